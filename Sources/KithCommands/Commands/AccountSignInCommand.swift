import ArgumentParser
import Kith
import KithTerminal

struct AccountSignInCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign-in",
    abstract: "Sign in to an account with a device on this host.",
    discussion: """
      Node and programs in the directory follow within a second. The account then has the writes \
      made while nobody was signed in, except those on its own keys.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(
    help: ArgumentHelp(
      "Its id (kith account list), or first digits. Default: the only one here."),
    completion: .accounts)
  var account: String?

  func run() async throws {
    let configuration = options.accounts()
    let chosen = try await Accounts.known(configuration).find(account)
    // A node that serves the local stores will serve the account soon.
    let hadNode = await Self.hasNode(try Accounts.deviceDirectory(in: options.directoryURL.path))
    try await Accounts.signIn(to: chosen, configuration)
    let hasNode =
      hadNode
      ? await SignInReport.isReached { await Self.hasNode(chosen.directory) }
      : await Self.hasNode(chosen.directory)
    try options.print(SignInReport.document(chosen, isSignedIn: true))
    options.console.talk(
      "Signed in to \(chosen.account.hex.prefix(16)). "
        + (hasNode ? "Its node runs." : "Start the node with: kith run"))
  }

  private static func hasNode(_ directory: String) async -> Bool {
    (try? await LocalClient(directory: directory).version()) != nil
  }
}

enum SignInReport {
  private static let patience = Duration.seconds(5)

  static func document(
    _ account: Accounts.KnownAccount, isSignedIn: Bool, servedBy process: Int32? = nil
  ) -> Document {
    .versioned([
      "account": .string(account.account.hex), "directory": .string(account.directory),
      "isSignedIn": .bool(isSignedIn), "servedBy": process.map { .int(Int($0)) },
    ])
  }

  /// Waits for nodes to follow; false if they did not in time.
  static func isReached(_ holds: () async -> Bool) async -> Bool {
    let end = ContinuousClock.now + patience
    while await !holds() {
      guard ContinuousClock.now < end else { return false }
      try? await Task.sleep(for: .milliseconds(25))
    }
    return true
  }
}
