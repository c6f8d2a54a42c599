import Foundation
import UbiquitousKeyValueStore

/// A protocol over every member, as programs write it to replace the store in tests.
protocol CloudStoring: AnyObject {
  static var `default`: NSUbiquitousKeyValueStore { get }
  func object(forKey aKey: String) -> Any?
  func string(forKey aKey: String) -> String?
  func array(forKey aKey: String) -> [Any]?
  func dictionary(forKey aKey: String) -> [String: Any]?
  func data(forKey aKey: String) -> Data?
  func longLong(forKey aKey: String) -> Int64
  func double(forKey aKey: String) -> Double
  func bool(forKey aKey: String) -> Bool
  func set(_ anObject: Any?, forKey aKey: String)
  func set(_ aString: String?, forKey aKey: String)
  func set(_ aData: Data?, forKey aKey: String)
  func set(_ anArray: [Any]?, forKey aKey: String)
  func set(_ aDictionary: [String: Any]?, forKey aKey: String)
  func set(_ value: Int64, forKey aKey: String)
  func set(_ value: Double, forKey aKey: String)
  func set(_ value: Bool, forKey aKey: String)
  func removeObject(forKey aKey: String)
  var dictionaryRepresentation: [String: Any] { get }
  func synchronize() -> Bool
}

extension NSUbiquitousKeyValueStore: CloudStoring {}

/// Like `ObservableObject` on Apple's systems: it is told before a change.
final class ChangePublisher {
  var sink: (() -> Void)?
  func send() { sink?() }
}

/// Settings that a view shows, kept in the store and taken from it when it changes elsewhere.
@MainActor final class CloudSettings {
  let objectWillChange = ChangePublisher()
  private let store: any CloudStoring
  private var observer: (any NSObjectProtocol)?

  var theme: String { didSet { store.set(theme, forKey: "theme") } }
  var isCompact: Bool { didSet { store.set(isCompact, forKey: "compact") } }

  init(store: any CloudStoring) {
    self.store = store
    theme = store.string(forKey: "theme") ?? "system"
    isCompact = store.bool(forKey: "compact")
    observer = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
      queue: .main
    ) { [weak self] notification in
      guard let info = notification.userInfo,
        let reason = info[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
        let keys = info[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
      else { return }
      guard
        reason == NSUbiquitousKeyValueStoreServerChange
          || reason == NSUbiquitousKeyValueStoreInitialSyncChange
      else { return }
      MainActor.assumeIsolated { self?.reload(keys) }
    }
    guard store.synchronize() else { fatalError("the store is not configured") }
  }

  func stop() {
    if let observer { NotificationCenter.default.removeObserver(observer) }
  }

  private func reload(_ keys: [String]) {
    objectWillChange.send()
    for key in keys {
      switch key {
      case "theme": theme = store.string(forKey: key) ?? "system"
      case "compact": isCompact = store.bool(forKey: key)
      default: break
      }
    }
  }
}
