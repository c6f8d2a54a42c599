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
    var table = Table([("", .left), ("", .left)])
    func add(_ name: String, _ text: String, _ tone: Style.Tone = .plain) {
      table.add([Table.Cell(name, .faint), Table.Cell(text, tone)])
    }
    add("account", summary.account.hex)
    add("device", Columns.printable(device.name), .strong)
    add("fingerprint", device.fingerprint)
    add("directory", directory)
    for other in others {
      add("with", "\(Columns.printable(other.name))  \(other.fingerprint)")
    }
    if let recoveryKey { add("recovery key", recoveryKey, .strong) }
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
