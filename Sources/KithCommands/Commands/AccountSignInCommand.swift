import ArgumentParser
import Kith
import KithTerminal

/// `kith account sign-in`.
struct AccountSignInCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign-in",
    abstract: "Sign in to an account whose device is on this host.",
    discussion: """
      Programs that have the directory open follow within a second. What they wrote while nobody \
      was signed in is the account's from then on, but for keys that it has already.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(help: "The account's id as `kith account list` shows it, or its first digits.")
  var account: String

  func run() async throws {
    try await options.accounts().use { accounts in
      let prefix = account.lowercased()
      let found = try accounts.known.filter { $0.account.hasPrefix(prefix) }
      guard let one = found.first, Set(found.map(\.account)).count == 1, !prefix.isEmpty else {
        throw CommandFailure(
          .notFound,
          found.isEmpty
            ? "no account \(Columns.printable(account, limit: 64)) is here; see: kith account list"
            : "several accounts begin with \(prefix); give more digits")
      }
      try await accounts.signIn(to: one)
    }
    options.console.talk("Signed in. Start the node with: kith run")
  }
}
