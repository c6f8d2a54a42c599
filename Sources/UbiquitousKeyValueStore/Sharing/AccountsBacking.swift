#if !canImport(Darwin)
  internal import Kith
  internal import Logging

  /// A store of the account that is signed in on this host, the same one through signing in and
  /// out.
  struct AccountsBacking: Backing {
    /// Before accounts that failed are served again.
    private static let waits = (first: Duration.seconds(1), longest: Duration.seconds(60))

    let accounts: Accounts
    private let plain: PlainBacking

    /// Creates the directory and the store if they are missing.
    init(_ settings: Settings) throws(KithError) {
      accounts = try Accounts(settings.accounts)
      plain = PlainBacking(
        store: try accounts.store(settings.storeIdentifier.rawValue, policy: settings.policy))
    }

    func value(forKey key: String) -> PropertyListValue? { plain.value(forKey: key) }
    var values: [KeyValueStore.Key: PropertyListValue] { plain.values }
    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
      try plain.set(value, forKey: key)
    }
    func flush() throws(KithError) { try plain.flush() }
    var changes: StoreChanges? { plain.changes }
    var refusals: [KeyValueStore.Refusal] { plain.refusals }
    func takeRefusals(through number: UInt64) { plain.takeRefusals(through: number) }
    var account: AccountID? { accounts.signedIn }
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable { accounts.signedInUpdates }

    /// Logs a failure and retries after a wait: the program cannot learn of it, and an address may
    /// become available.
    func run() async {
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
