import Kith
import KithTerminal

struct PeersReport: Equatable, Sendable {
  var status: NodeStatus
  var nowMilliseconds: UInt64

  func text(_ style: Style) -> String {
    var table = Table([
      ("DEVICE", .left), ("FINGERPRINT", .left), ("STATE", .left), ("ADDRESS", .left),
      ("HEARD", .right), ("CLOCK", .right),
    ])
    for device in status.members {
      let state = status.state(of: device, now: nowMilliseconds)
      let session = status.session(with: device)
      let address = session?.address ?? device.addresses.first
      let offset = session?.clockOffsetMilliseconds
      table.add([
        Table.Cell(Columns.printable(device.name, limit: 24), .strong),
        Table.Cell(device.fingerprint), Table.Cell(state.text, state.tone),
        Table.Cell(address.map { Columns.printable($0) } ?? ""),
        Table.Cell(device.isThisDevice ? "" : heard(device)),
        Table.Cell(offset.map(Self.offset) ?? ""),
      ])
    }
    return table.text(style)
  }

  private func heard(_ device: NodeStatus.Device) -> String {
    device.lastSeenMilliseconds.map { Humane.ago($0, now: nowMilliseconds) } ?? "not yet"
  }

  static func offset(_ milliseconds: Int64) -> String {
    let sign = milliseconds > 0 ? "+" : ""
    guard milliseconds.magnitude >= 10_000 else { return "\(sign)\(milliseconds) ms" }
    return sign + Humane.decimals(Double(milliseconds) / 1_000, 1) + " s"
  }

  var document: Document {
    .versioned(["devices": .of(status.members), "peers": .of(status.peers)])
  }
}
