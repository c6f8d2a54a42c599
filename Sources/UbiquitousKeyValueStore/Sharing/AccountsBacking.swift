#if !canImport(Darwin)
  internal import Kith
  internal import Logging

  /// A store of whoever is signed in on this host. It is the same store through signing in and out.
  struct AccountsBacking: Backing {
    /// The wait before accounts that failed are served again, and the longest one.
    private static let waits = (first: Duration.seconds(1), longest: Duration.seconds(60))

    let accounts: Accounts
    private let plain: PlainBacking

    /// Opens the accounts of a directory, and the store; both are made where they are missing.
    init(_ settings: Settings) throws(KithError) {
      var configuration = Accounts.Configuration(directory: settings.directory)
      let chosen = settings.configuration
      configuration.hosts = chosen.hosts ?? configuration.hosts
      configuration.port = chosen.port ?? configuration.port
      configuration.peers = chosen.peers ?? configuration.peers
      configuration.discoversPeers = chosen.discoversPeers ?? configuration.discoversPeers
      configuration.passphrase = chosen.passphrase
      configuration.logger = chosen.logger
      accounts = try Accounts(configuration)
      plain = PlainBacking(
        store: try accounts.store(settings.storeIdentifier.rawValue, policy: chosen.policy))
    }

    func value(forKey key: String) -> PropertyListValue? { plain.value(forKey: key) }
    var values: [Key: PropertyListValue] { plain.values }
    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
      try plain.set(value, forKey: key)
    }
    func flush() throws(KithError) { try plain.flush() }
    var changes: StoreChanges? { plain.changes }
    var refusals: [RefusedTransaction] { plain.refusals }
    func takeRefusals(through number: UInt64) { plain.takeRefusals(through: number) }
    var account: AccountID? { accounts.signedIn }
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable { accounts.signedInUpdates }

    /// Serves the accounts. What ends that is logged, and tried again after a while: a program that
    /// reads and writes cannot be told, and an address may be there again later.
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
