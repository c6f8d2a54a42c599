#if !canImport(Darwin)
  internal import Kith
  internal import Synchronization

  /// The data and services of the class's objects.
  protocol StoreBackend: Sendable {
    /// From memory.
    func value(forKey key: String) -> PropertyListValue?
    /// All shown at one moment.
    var values: [KeyValueStore.Key: PropertyListValue] { get }
    /// Sets a key's value, visible at once; nil removes the key. It is published soon, with other
    /// writes, or by the next ``flush()``.
    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError)
    /// Makes all writes durable. It blocks for the disk, never for the network.
    func flush() throws(KithError)
    /// From outside and from now on; nil if there are never any. `onOffer` is called at each and at
    /// the end.
    func changes(onOffer: @escaping @Sendable () -> Void) -> StoreChanges?
    /// Oldest first.
    var refusals: [KeyValueStore.Refusal] { get }
    func takeRefusals(through number: UInt64)
    var account: AccountID? { get }
    /// The account now, and after each change, once the changes that it brought were offered.
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable { get }
    func run() async
  }

  /// For a backend without accounts.
  extension StoreBackend {
    func changes(onOffer: @escaping @Sendable () -> Void) -> StoreChanges? { nil }
    var refusals: [KeyValueStore.Refusal] { [] }
    func takeRefusals(through number: UInt64) {}
    var account: AccountID? { nil }
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable {
      AsyncStream<AccountID?>(unfolding: { nil })
    }
    func run() async {}
  }

  /// A store of Kith.
  struct KithBackend: StoreBackend {
    /// Before accounts that failed are served again.
    private static let waits = (first: Duration.seconds(1), longest: Duration.seconds(60))

    let store: KeyValueStore
    /// The accounts of the store, which ``run()`` serves; nil: its maker, such as a test, runs and
    /// closes it.
    var accounts: Accounts?

    func value(forKey key: String) -> PropertyListValue? { store.value(forKey: key) }
    var values: [KeyValueStore.Key: PropertyListValue] { store.dictionary }
    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
      try store.setCoalesced(value, forKey: key)
    }
    func flush() throws(KithError) { try store.flush() }
    func changes(onOffer: @escaping @Sendable () -> Void) -> StoreChanges? {
      store.changes(includingOwnWrites: false, onOffer: onOffer)
    }
    /// Empty if another program's node does not answer: it keeps them.
    var refusals: [KeyValueStore.Refusal] { (try? store.refusals) ?? [] }
    func takeRefusals(through number: UInt64) { _ = try? store.takeRefusals(through: number) }
    var account: AccountID? { accounts?.signedIn }
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable {
      guard let accounts else { return AsyncStream<AccountID?>(unfolding: { nil }) }
      return accounts.signedInUpdates
    }

    /// Logs a failure and retries after a wait: the program cannot learn of it, and an address may
    /// become available.
    func run() async {
      guard let accounts else { return }
      var wait = Self.waits.first
      while !Task.isCancelled {
        do {
          return try await accounts.run()
        } catch {
          accounts.configuration.logger.error(
            "the store does not reach other devices now", metadata: ["reason": "\(error)"])
        }
        try? await Task.sleep(for: wait)
        wait = min(wait * 2, Self.waits.longest)
      }
    }
  }

  /// A store in memory, used if the directory cannot be. Flushing throws the reason.
  final class MemoryBackend: StoreBackend {
    private let state = Mutex<[KeyValueStore.Key: PropertyListValue]>([:])
    private let problem: KithError
    private let policy: KeyValueStore.Policy

    init(because problem: KithError, policy: KeyValueStore.Policy = .standard) {
      self.problem = problem
      self.policy = policy
    }

    func value(forKey key: String) -> PropertyListValue? {
      state.withLock { $0[KeyValueStore.Key(key)] }
    }
    var values: [KeyValueStore.Key: PropertyListValue] { state.withLock { $0 } }

    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
      let key = KeyValueStore.Key(key)
      guard let value else { return state.withLock { $0[key] = nil } }
      guard (1...policy.keyBytes).contains(key.size) else {
        throw KithError(
          .invalidKey, "A key has 1 to \(policy.keyBytes) bytes of UTF-8.")
      }
      // The data is lost at exit anyway, so limiting the number of keys is enough.
      let isWithinLimit = state.withLock { values in
        guard values[key] != nil || values.count < policy.keys else { return false }
        values[key] = value
        return true
      }
      guard isWithinLimit else {
        throw KithError(
          .quotaExceeded, "The store has \(policy.keys) keys. Remove something first.")
      }
    }

    func flush() throws(KithError) { throw problem }
  }
#endif
