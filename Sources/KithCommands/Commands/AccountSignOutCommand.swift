import ArgumentParser
import Kith
import KithStorage
import KithTerminal

struct AccountSignOutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign-out",
    abstract: "Sign out: programs then see local stores.",
    discussion: """
      The account's data stays here and on its other devices. `kith run` and programs in the \
      directory follow within a second: they exchange nothing, and writes stay on this host until \
      somebody signs in.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    guard let left = try await Accounts.signOut(options.accounts()) else {
      throw CommandFailure.signedOut(options.directoryURL.path)
    }
    let isLeft = try await NodeConnector.wait(
      for: left.directory, toBeServed: false, within: SignInReport.timeout)
    let server = isLeft ? nil : DeviceDirectory.owner(of: left.directory)
    try options.print(SignInReport.document(left, isSignedIn: false, servedBy: server))
    let place = options.directory.map { " --directory \(ShellText.quoted($0))" } ?? ""
    options.console.talk(
      "Signed out. Sign in again with: kith account sign-in \(left.account.hex.prefix(16))\(place)")
    if let server {
      options.console.warn(
        "process \(server) has opened the account's device by itself, and goes on exchanging: stop it"
      )
    }
  }
}
