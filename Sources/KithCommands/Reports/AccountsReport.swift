package import Kith
import KithTerminal

package struct AccountsReport: Equatable, Sendable {
  /// In the order of their first signing in.
  var accounts: [Accounts.KnownAccount]
  /// The file that each account's device lacks; nil: none.
  var missingFiles: [String?]

  package init(accounts: [Accounts.KnownAccount], missingFiles: [String?] = []) {
    self.accounts = accounts
    self.missingFiles =
      missingFiles + Array(repeating: nil, count: max(0, accounts.count - missingFiles.count))
  }

  func text(_ style: Style) -> String {
    guard !accounts.isEmpty else { return "" }
    var table = Table([("ACCOUNT", .left), ("STATE", .left), ("DIRECTORY", .wrapped)])
    for (account, missing) in zip(accounts, missingFiles) {
      let state = account.isSignedIn ? "signed in" : "signed out"
      table.add([
        Table.Cell("\(account.account.hex.prefix(16))"),
        missing.map { Table.Cell("\(state), lacks \(Self.name(of: $0))", .bad) }
          ?? Table.Cell(state, account.isSignedIn ? .good : .faint),
        Table.Cell(Columns.printable(account.directory)),
      ])
    }
    return table.text(style)
  }

  package var document: Document {
    .versioned([
      "accounts": .list(
        zip(accounts, missingFiles).map { account, missing in
          .object([
            "account": .string(account.account.hex), "directory": .string(account.directory),
            "isSignedIn": .bool(account.isSignedIn),
            "lacks": missing.map { .string(Self.name(of: $0)) },
          ])
        })
    ])
  }

  private static func name(of path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? ""
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
  /// How many stores a joining device has only in part; nil: it did not join.
  var partialStores: Int?

  private var device: NodeStatus.Device { .init(id: summary.device, name: summary.name) }

  func text(_ style: Style) -> String {
    var table = Table()
    table.add(fact: "account", .init(summary.account.hex))
    table.add(fact: "device", .init(Columns.printable(device.name), .strong))
    table.add(fact: "fingerprint", .init(device.fingerprint))
    table.add(fact: "directory", .init(directory))
    for other in others.sorted(by: { ($0.name, $0.id) < ($1.name, $1.id) }) {
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
      "partialStores": partialStores.map { .int($0) },
      "recoveryKey": .string(recoveryKey),
    ])
  }
}
