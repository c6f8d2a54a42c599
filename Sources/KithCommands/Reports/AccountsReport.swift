package import Kith
import KithTerminal

package struct AccountsReport: Equatable, Sendable {
  /// In the order of their first signing in.
  var accounts: [Accounts.KnownAccount]

  package init(accounts: [Accounts.KnownAccount]) { self.accounts = accounts }

  func text(_ style: Style) -> String {
    guard !accounts.isEmpty else { return "" }
    var table = Table([("ACCOUNT", .left), ("STATE", .left), ("DIRECTORY", .wrapped)])
    for account in accounts {
      table.add([
        Table.Cell("\(account.account.hex.prefix(16))"),
        account.isSignedIn ? Table.Cell("signed in", .good) : Table.Cell("signed out", .faint),
        Table.Cell(Columns.printable(account.directory)),
      ])
    }
    return table.text(style)
  }

  package var document: Document {
    .versioned([
      "accounts": .list(
        accounts.map {
          .object([
            "account": .string($0.account.hex), "directory": .string($0.directory),
            "isSignedIn": .bool($0.isSignedIn),
          ])
        })
    ])
  }
}
