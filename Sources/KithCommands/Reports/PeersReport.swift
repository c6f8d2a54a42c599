import KithTerminal

/// The report of `kith peers`: the devices of the account and their connections.
struct PeersReport: Equatable, Sendable {
  /// All devices.
  var devices: [DeviceFacts]
  /// Now, in milliseconds since 1970.
  var nowMilliseconds: UInt64

  /// The report for people.
  func text(_ style: Style) -> String {
    var table = Table([
      ("DEVICE", .left), ("FINGERPRINT", .left), ("STATE", .left), ("ADDRESS", .left),
      ("HEARD", .right), ("CLOCK", .right),
    ])
    for device in devices {
      let state = device.state
      table.add([
        Table.Cell(Columns.printable(device.name, limit: 24), .strong),
        Table.Cell(device.fingerprint), Table.Cell(state.text, state.tone),
        Table.Cell(device.addresses.first.map { Columns.printable($0) } ?? ""),
        Table.Cell(device.isSelf ? "" : heard(device)),
        Table.Cell(device.clockOffsetMilliseconds.map(Self.offset) ?? ""),
      ])
    }
    return table.text(style)
  }

  private func heard(_ device: DeviceFacts) -> String {
    device.lastSeenMilliseconds.map { Humane.ago($0, now: nowMilliseconds) } ?? "not yet"
  }

  /// Formats a difference of clocks.
  static func offset(_ milliseconds: Int64) -> String {
    let sign = milliseconds > 0 ? "+" : ""
    guard milliseconds.magnitude >= 10_000 else { return "\(sign)\(milliseconds) ms" }
    return sign + Humane.decimals(Double(milliseconds) / 1_000, 1) + " s"
  }

  /// The report for programs.
  var document: Document {
    .versioned(["devices": .list(devices.map(\.document))])
  }
}
