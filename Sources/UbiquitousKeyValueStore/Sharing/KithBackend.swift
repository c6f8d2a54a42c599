#if !canImport(Darwin)
  internal import Kith

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
    var changes: StoreChanges? { store.changes }
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
#endif
