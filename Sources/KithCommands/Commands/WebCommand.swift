import ArgumentParser
import Kith

struct WebCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "web",
    abstract: "Show the devices and stores on a page in the browser.",
    discussion: """
      Prints the page's address, and opens it in a graphical session. Only this computer reaches \
      it, and only one browser, because the address works once. The page shows this device and the \
      others, edits values, pairs, renames and revokes.

      Uses the running node. If none runs, this program runs one meanwhile, with --listen, --port, \
      --peer and --no-discovery; a node that starts later gets the directory. Ends with SIGTERM or \
      SIGINT.
      """)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The page's port. Default: any free one.", valueName: "number"))
  var webPort: UInt16?

  @Flag(
    inversion: .prefixedNo,
    help: "Open the page in the browser. Default: in a graphical session.")
  var open: Bool?

  @OptionGroup var node: NodeOptions

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  func run() async throws {
    guard let make = WebPage.maker.withLock({ $0 }) else { throw PageProgram.replaceThisOne() }
    DescriptorLimit.raise()
    let store = try store.identifier
    var configuration = options.accounts(passphrase: options.passphraseQuestion)
    // A device that the page makes gets the configured passphrase: no person is asked for one.
    if try options.isSignedOut { configuration.passphrase = options.passphraseSource?.read }
    try node.apply(to: &configuration)
    configuration.logger = ServiceLog.logger(options.quiet ? .error : .warning)
    let address = PageAddress(options: options, opens: open)
    defer { address.remove() }
    try await Accounts(configuration).use { accounts in
      try await accounts.openDefaultStore(store)
      let page = WebPage(
        accounts: accounts, store: store, port: webPort ?? 0, onReady: address.show,
        onUse: address.remove)
      try await accounts.runUntilSignal(beside: make(page))
    }
  }
}
