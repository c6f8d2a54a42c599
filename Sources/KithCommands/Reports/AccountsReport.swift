import Kith
import KithTerminal

/// What `kith account list` says.
struct AccountsReport: Equatable, Sendable {
  /// The accounts, in the order in which they were signed in first.
  var accounts: [Accounts.KnownAccount]

  /// The report for people.
  func text(_ style: Style) -> String {
    guard !accounts.isEmpty else { return "" }
    var table = Table([("ACCOUNT", .left), ("STATE", .left), ("DIRECTORY", .left)])
    for account in accounts {
      table.add([
        Table.Cell("\(account.account.prefix(16))"),
        account.isSignedIn ? Table.Cell("signed in", .good) : Table.Cell("signed out", .faint),
        Table.Cell(Columns.printable(account.directory)),
      ])
    }
    return table.text(style)
  }

  /// The report for programs.
  var document: Document {
    .versioned([
      "accounts": .list(
        accounts.map {
          .object([
            "account": .string($0.account), "directory": .string($0.directory),
            "isSignedIn": .bool($0.isSignedIn),
          ])
        })
    ])
  }
}
