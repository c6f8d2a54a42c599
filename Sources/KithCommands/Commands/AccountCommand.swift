import ArgumentParser

struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account",
    abstract: "Create, recover or lock accounts; sign in and out.",
    subcommands: [
      AccountCreateCommand.self, AccountRecoverCommand.self, AccountListCommand.self,
      AccountSignInCommand.self, AccountSignOutCommand.self, AccountLeaveCommand.self,
      AccountLockCommand.self, AccountUnlockCommand.self,
    ])
}
