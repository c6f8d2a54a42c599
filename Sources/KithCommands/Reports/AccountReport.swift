import Kith
import KithTerminal

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
