import ArgumentParser
import Kith
import KithTerminal

struct AccountSignInCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign-in",
    abstract: "Sign in to an account with a device on this host.",
    discussion: """
      Node and programs in the directory follow within a second. The account then has the writes \
      made while nobody was signed in, except those on its own keys, which kith unshown lists.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(
    help: ArgumentHelp(
      "Its id (kith account list), or first digits. Default: the only one here."),
    completion: .accounts)
  var account: String?

  func run() async throws {
    let passphrase = options.passphraseQuestionAskedOnce
    let configuration = options.accounts(passphrase: passphrase)
    let chosen = try await Accounts.known(configuration).find(account)
    // A node that serves the local stores will serve the account soon.
    let local = try Accounts.deviceDirectory(in: options.directoryURL.path)
    let hadNode = try await NodeConnector.wait(for: local, toBeServed: true, within: .zero)
    let hasLost = try await Accounts.signIn(to: chosen, configuration)
    let hasNode = try await NodeConnector.wait(
      for: chosen.directory, toBeServed: true, within: hadNode ? SignInReport.timeout : .zero)
    try options.print(SignInReport.document(chosen, isSignedIn: true))
    options.console.talk(
      "Signed in to \(chosen.account.hex.prefix(16)). "
        + (hasNode ? "Its node runs." : "Start the node with: kith run"))
    // Without a node the device is opened, which may take a passphrase, only if there is news.
    guard hasNode || hasLost, !options.quiet else { return }
    let unshown = try? await options.withNode(passphrase: passphrase) { node in
      try await node.status().unshownNotice
    }
    if let unshown = unshown ?? nil { options.console.talk(unshown) }
  }
}

enum SignInReport {
  /// How long nodes may take to follow.
  static let timeout = Duration.seconds(5)

  static func document(
    _ account: Accounts.KnownAccount, isSignedIn: Bool, servedBy process: Int32? = nil
  ) -> Document {
    .versioned([
      "account": .string(account.account.hex), "directory": .string(account.directory),
      "isSignedIn": .bool(isSignedIn), "servedBy": process.map { .int(Int($0)) },
    ])
  }
}
