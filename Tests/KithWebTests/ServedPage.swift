#if Web
  import Kith
  import KithCore
  import KithTestSupport
  import Logging
  import ServiceLifecycle
  import Testing

  @testable import KithCommands
  @testable import KithWeb

  /// Runs the page's server on loopback, over the stores of a new directory, and hands the body a
  /// client with the secrets. With no name nobody is signed in.
  func withPage(
    signedInAs name: String? = "laptop", _ body: (PageClient, Accounts) async throws -> Void
  ) async throws {
    let directory = try TestDirectory()
    defer { withExtendedLifetime(directory) {} }
    var configuration = Accounts.Configuration(directory: directory.child("a"))
    configuration.hosts = ["127.0.0.1"]
    configuration.port = 0
    configuration.discoversPeers = false
    configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let accounts = try Accounts(configuration)
    if let name { _ = try await accounts.createAccount(name: name) }
    let (addresses, address) = AsyncStream<String>.makeStream()
    let page = WebPage(
      accounts: accounts, store: try #require(StoreIdentifier("default")), port: 0,
      onReady: { address.yield($0) }, onUse: {})
    let group = ServiceGroup(
      configuration: .init(
        services: [accounts, PageServer(page)],
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    async let running: Void = group.run()
    for await address in addresses {
      try await body(PageClient.opening(address), accounts)
      break
    }
    await group.triggerGracefulShutdown()
    try await running
    try accounts.close()
  }
#endif
