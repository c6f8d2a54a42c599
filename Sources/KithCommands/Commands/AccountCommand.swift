import ArgumentParser

/// `kith account`: begins, shows and regains accounts, signs in and out.
struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account",
    abstract: "Begin, show or regain accounts, sign in and out.",
    subcommands: [
      AccountCreateCommand.self, AccountShowCommand.self, AccountRecoverCommand.self,
      AccountListCommand.self, AccountSignInCommand.self, AccountSignOutCommand.self,
    ])
}
