import Foundation
import KithTesting
import UbiquitousKeyValueStore
import UbiquitousKeyValueStorePorting

/// Observes with selectors, as most programs for Apple's systems do. `#selector` became `Selector`,
/// and `@objc` is gone.
final class PortedSettings: @unchecked Sendable {
  private let store: NSUbiquitousKeyValueStore
  let heard = Locked<String>()

  init(store: NSUbiquitousKeyValueStore) {
    self.store = store
    NotificationCenter.default.addObserver(
      self, selector: Selector(PortedSettings.storeDidChange(_:)),
      name: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store)
    NotificationCenter.default.addObserver(
      self, selector: Selector(Self.identityDidChange),
      name: .NSUbiquityIdentityDidChange, object: nil)
  }

  deinit { NotificationCenter.default.removeObserver(self) }

  private func storeDidChange(_ notification: Notification) {
    for key in notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? [] {
      heard.append(key)
    }
  }

  private func identityDidChange() { heard.append("identity") }
}

/// A model of the main actor.
@MainActor final class PortedModel {
  private(set) var theme: String?
  private let store: NSUbiquitousKeyValueStore

  init(store: NSUbiquitousKeyValueStore) {
    self.store = store
  }

  /// Follows the store as an asynchronous sequence.
  func follow() async {
    let name = NSUbiquitousKeyValueStore.didChangeExternallyNotification
    for await _ in NotificationCenter.default.notifications(named: name, object: store) {
      theme = store.string(forKey: "theme")
    }
  }
}

@MainActor struct Ported {
  let checks: Checks

  func runAll() throws {
    let account = try TestAccount()
    let there = try account[0].store("com.example.Client")
    let store = try UbiquityBootstrap.makeStore(on: account[1].store("com.example.Client"))
    store.synchronize()
    let model = PortedModel(store: store)
    let following = Task { await model.follow() }
    var settings: PortedSettings? = PortedSettings(store: store)
    let heard = settings?.heard
    try there.set("dark", forKey: "theme")
    checks.wait { heard?.all == ["theme"] }
    NotificationCenter.default.post(name: .NSUbiquityIdentityDidChange, object: nil)
    checks.expect(heard?.all == ["theme", "identity"])
    settings = nil
    // Until the sequence has begun, and hears of it.
    var size: Int64 = 0
    checks.wait {
      size += 1
      try? there.set(.integer(size), forKey: "size")
      return model.theme == "dark"
    }
    checks.expect(heard?.all == ["theme", "identity"])
    following.cancel()
  }
}
