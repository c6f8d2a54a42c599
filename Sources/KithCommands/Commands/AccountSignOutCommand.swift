import ArgumentParser
import Kith
import KithTerminal

/// `kith account sign-out`.
struct AccountSignOutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign-out",
    abstract: "Sign out: programs see local stores from then on.",
    discussion: """
      The account's data stays here and on its other devices; a node that `kith run` serves goes on. \
      Programs that have the directory open follow within a second.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    try await options.accounts().use { accounts in
      guard accounts.signedIn != nil else {
        throw CommandFailure(.directory, "nobody is signed in here")
      }
      try await accounts.signOut()
    }
    options.console.talk("Signed out. Sign in again with: kith account sign-in")
  }
}
