import Kith
import KithCore
import KithTerminal

/// The report of `kith account` and `kith join`.
struct AccountReport: Equatable, Sendable {
  /// The account's id in hexadecimal.
  var account: String
  /// This device.
  var device: DeviceFacts
  /// The directory.
  var directory: String
  /// The recovery key, shown once, when the account is created.
  var recoveryKey: String?
  /// The other devices of the account, if they are known.
  var others: [DeviceFacts] = []

  /// The report for people.
  func text(_ style: Style) -> String {
    var table = Table([("", .left), ("", .left)])
    func add(_ name: String, _ text: String, _ tone: Style.Tone = .plain) {
      table.add([Table.Cell(name, .faint), Table.Cell(text, tone)])
    }
    add("account", account)
    add("device", Columns.printable(device.name), .strong)
    add("fingerprint", device.fingerprint)
    add("directory", directory)
    for other in others {
      add("with", "\(Columns.printable(other.name))  \(other.fingerprint)")
    }
    if let recoveryKey { add("recovery key", recoveryKey, .strong) }
    return table.text(style)
  }

  /// The report for programs.
  var document: Document {
    .versioned([
      "account": .string(account),
      "device": .object([
        "fingerprint": .string(device.fingerprint), "id": .string(device.id),
        "name": .string(device.name),
      ]),
      "devices": others.isEmpty ? nil : .list(others.map(\.document)),
      "directory": .string(directory),
      "recoveryKey": .string(recoveryKey),
    ])
  }
}

extension AccountReport {
  /// Makes the report on a directory that was just created.
  init(_ summary: AccountSummary, directory: String, recoveryKey: String? = nil) {
    self.init(
      account: Hexadecimal.text(summary.account.bytes),
      device: DeviceFacts(
        id: Hexadecimal.text(summary.device.bytes), name: summary.name,
        fingerprint: Fingerprint(of: summary.device).description, isSelf: true),
      directory: directory, recoveryKey: recoveryKey)
  }
}
