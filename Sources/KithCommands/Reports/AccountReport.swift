import Kith
import KithTerminal

struct AccountReport: Equatable, Sendable {
  var account: AccountID
  var device: NodeStatus.Device
  var directory: String
  /// Shown once, when the account is created.
  var recoveryKey: String?
  /// The other devices of the account, if they are known.
  var others: [NodeStatus.Device] = []

  func text(_ style: Style) -> String {
    var table = Table([("", .left), ("", .left)])
    func add(_ name: String, _ text: String, _ tone: Style.Tone = .plain) {
      table.add([Table.Cell(name, .faint), Table.Cell(text, tone)])
    }
    add("account", account.hex)
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
      "account": .string(account.hex),
      "device": device.document,
      "devices": others.isEmpty ? nil : .of(others),
      "directory": .string(directory),
      "recoveryKey": .string(recoveryKey),
    ])
  }
}

extension AccountReport {
  /// The report on a directory that was just created.
  init(_ summary: AccountSummary, directory: String, recoveryKey: String? = nil) {
    self.init(
      account: summary.account, device: .init(id: summary.device, name: summary.name),
      directory: directory, recoveryKey: recoveryKey)
  }
}
