import ArgumentParser

/// `kith account`: begins, shows and regains accounts.
struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account",
    abstract: "Begin, show or regain the account.",
    subcommands: [
      AccountCreateCommand.self, AccountShowCommand.self, AccountRecoverCommand.self,
    ])
}
