import Foundation
import KithCore
import KithCrypto
import Logging
import Synchronization

@testable import Kith
@testable import UbiquitousKeyValueStore

struct TimedOut: Error {}

/// The notifications that a program gets of some objects, in order.
final class Heard: Sendable {
  struct Told: Equatable {
    var object: ObjectIdentifier?
    var reason: Int?
    var keys: [String]?
  }

  private let told = Mutex<[Told]>([])
  // Set once, before anybody else has the object.
  nonisolated(unsafe) private var token: (any NSObjectProtocol)?

  /// Listens to one object, or to all of the process.
  init(
    _ object: NSUbiquitousKeyValueStore?,
    then: @escaping @Sendable () -> Void = {}
  ) {
    token = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: object,
      queue: nil
    ) { [weak self] notification in
      let info = notification.userInfo
      let told = Told(
        object: (notification.object as? NSUbiquitousKeyValueStore).map { ObjectIdentifier($0) },
        reason: (info?[NSUbiquitousKeyValueStoreChangeReasonKey] as? NSNumber)?.intValue,
        keys: info?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String])
      self?.told.withLock { $0.append(told) }
      then()
    }
  }

  deinit {
    if let token { NotificationCenter.default.removeObserver(token) }
  }

  var all: [Told] { told.withLock { $0 } }
  var keys: [[String]] { all.map { $0.keys ?? [] } }
  var reasons: [Int] { all.map { $0.reason ?? -1 } }
}

/// A backend that a test drives: its disk can fail, its account can change.
final class FakeBackend: StoreBackend {
  struct State {
    var values: [Key: PropertyListValue] = [:]
    var problem: KithError?
    var refusals: [Refusal] = []
    var account: AccountID?
    var flushes = 0
    /// Called, unlocked, when the refusals are asked for.
    var onQuestion: @Sendable () -> Void = {}
  }

  let state = Mutex(State())
  private let view: StoreView
  private let buffer = Mutex<ChangeBuffer?>(nil)
  private let accountStream = AsyncStream<AccountID?>.makeStream()

  init() {
    guard let identifier = StoreIdentifier("com.example.Fake"),
      let device = DeviceID(hex: String(repeating: "07", count: 32))
    else { preconditionFailure("they are an identifier and a device") }
    view = StoreView(identifier: identifier, device: device, values: [:])
  }

  func value(forKey key: String) -> PropertyListValue? { state.withLock { $0.values[Key(key)] } }
  var values: [Key: PropertyListValue] { state.withLock { $0.values } }
  func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
    let problem = state.withLock { state in
      if state.problem == nil { state.values[Key(key)] = value }
      return state.problem
    }
    if let problem { throw problem }
  }
  func flush() throws(KithError) {
    let problem = state.withLock { state in
      state.flushes += 1
      return state.problem
    }
    if let problem { throw problem }
  }
  func changes(onOffer: @escaping @Sendable () -> Void) -> StoreChanges? {
    let made = ChangeBuffer(seesOwnWrites: false, onOffer: onOffer)
    buffer.withLock { $0 = made }
    return StoreChanges(subscription: .init(buffer: made, view: view, number: 0))
  }
  var refusals: [Refusal] {
    state.withLock(\.onQuestion)()
    return state.withLock { $0.refusals }
  }
  func takeRefusals(through number: UInt64) {
    state.withLock { $0.refusals.removeAll { $0.number <= number } }
  }
  var account: AccountID? { state.withLock { $0.account } }
  var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable { accountStream.stream }

  /// The store is open by now.
  func tell(_ change: KeyValueStore.Change) { buffer.withLock { $0 }?.offer(change)?() }
  func signIn(_ account: AccountID?) {
    state.withLock { $0.account = account }
    accountStream.continuation.yield(account)
  }
}

extension NSUbiquitousKeyValueStore {
  /// An object on a backend of a test's.
  static func on(
    _ backend: any StoreBackend, isConfigured: Bool = true
  ) -> NSUbiquitousKeyValueStore {
    NSUbiquitousKeyValueStore(shared: .on(backend, isConfigured: isConfigured))
  }
}

extension SharedStore {
  static func on(
    _ backend: any StoreBackend, isConfigured: Bool = true,
    coalescing coalesce: @escaping @Sendable () async -> Void = ChangeNotifier.coalesce
  ) -> SharedStore {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return SharedStore(coalescing: coalesce) { [logger] in
      Opening(backend: backend, isConfigured: isConfigured, logger: logger)
    }
  }
}

/// Whether a backend's work has begun and ended.
final class Ended: Sendable {
  private let state = Mutex((hasBegun: false, hasEnded: false))
  var hasBegun: Bool { state.withLock { $0.hasBegun } }
  var hasEnded: Bool { state.withLock { $0.hasEnded } }
  func begin() { state.withLock { $0.hasBegun = true } }
  func end() { state.withLock { $0.hasEnded = true } }
}

/// Works until it is cancelled.
struct EndlessBacking: StoreBackend {
  let ended: Ended

  func value(forKey key: String) -> PropertyListValue? { nil }
  var values: [Key: PropertyListValue] { [:] }
  func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {}
  func flush() throws(KithError) {}
  func run() async {
    ended.begin()
    for await _ in AsyncStream<Never>.makeStream().stream {}
    ended.end()
  }
}

extension AccountID {
  static func test(_ byte: UInt8) -> Self {
    Self(Digest256 { $0.copyBytes(from: repeatElement(byte, count: 32)) })
  }
}

extension Refusal {
  static func test(_ number: UInt64, _ reason: Reason, _ keys: [String]) -> Self {
    Self(
      number: number, reason: reason, clock: HybridTime(rawValue: 0),
      operations: keys.map { KithCore.Operation(key: $0, value: nil) })
  }
}
