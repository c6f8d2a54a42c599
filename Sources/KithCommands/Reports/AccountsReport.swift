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

/// The report on a directory that was just created.
struct AccountReport: Sendable {
  var summary: AccountSummary
  var directory: String
  /// Shown once, when the account is created.
  var recoveryKey: String?
  /// The other devices of the account, if they are known.
  var others: [NodeStatus.Device] = []

  private var device: NodeStatus.Device { .init(id: summary.device, name: summary.name) }

  func text(_ style: Style) -> String {
    var table = Table()
    table.add(fact: "account", .init(summary.account.hex))
    table.add(fact: "device", .init(Columns.printable(device.name), .strong))
    table.add(fact: "fingerprint", .init(device.fingerprint))
    table.add(fact: "directory", .init(directory))
    for other in others {
      table.add(fact: "with", "\(Columns.printable(other.name))  \(other.fingerprint)")
    }
    if let recoveryKey { table.add(fact: "recovery key", .init(recoveryKey, .strong)) }
    return table.text(style)
  }

  var document: Document {
    .versioned([
      "account": .string(summary.account.hex),
      "device": device.document,
      "devices": others.isEmpty ? nil : .of(others),
      "directory": .string(directory),
      "recoveryKey": .string(recoveryKey),
    ])
  }
}
