import ArgumentParser
import Kith
import KithTerminal

struct AccountListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the accounts with a device on this host.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let known = try await Accounts.known(options.accounts())
    let report = AccountsReport(accounts: known)
    try options.print(report.document, text: report.text)
    if known.isEmpty {
      options.console.talk("Nobody has signed in here yet: kith account create, or kith join.")
    }
  }
}
