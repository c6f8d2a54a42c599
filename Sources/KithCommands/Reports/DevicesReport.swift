import Kith
import KithTerminal

struct DevicesReport: Equatable, Sendable {
  var status: NodeStatus
  /// Whether people see revoked devices; the document has all.
  var showsRevoked = false
  var nowMilliseconds: UInt64

  func text(_ style: Style) -> String {
    var table = Table([
      ("DEVICE", .left), ("FINGERPRINT", .left), ("STATE", .left), ("ENROLLED", .right),
      ("BY", .left), ("HEARD", .right), ("HAS", .left), ("VERSION", .left), ("CLOCK", .right),
      ("ADDRESS", .left),
    ])
    for device in status.devices where showsRevoked || device.isMember {
      let (state, tone) = state(device)
      let isOther = !device.isThisDevice && device.isMember
      table.add([
        Table.Cell(Columns.printable(device.name, limit: 24), .strong),
        Table.Cell(device.fingerprint), Table.Cell(state, tone),
        Table.Cell(Humane.ago(device.enrolledMilliseconds, now: nowMilliseconds)),
        Table.Cell(enroller(device)), Table.Cell(isOther ? heard(device) : ""),
        Table.Cell(isOther ? has(device) : ""),
        Table.Cell(device.software.map { Columns.printable($0, limit: 16) } ?? ""),
        Table.Cell(isOther ? device.clockOffsetMilliseconds.map(Humane.offset) ?? "" : ""),
        Table.Cell(isOther ? address(device) : ""),
      ])
    }
    var parts = [table.text(style)]
    if let names = names({ !$0.wasHeard }) {
      let advice = """
        Never heard of: \(names). If none of your devices is that, as where joining broke off, take it \
        out: kith devices revoke
        """
      parts.append(style(.warning, advice))
    }
    let unseen = Set(status.stores.flatMap(\.removalsUnseenBy))
    if let names = names({ unseen.contains($0.id) }) {
      let advice = """
        Not seen many removals: \(names). Start it, or take it out: kith devices revoke
        """
      parts.append(style(.warning, advice))
    }
    return parts.joined(separator: "\n\n")
  }

  private func names(_ isMeant: (NodeStatus.Device) -> Bool) -> String? {
    let meant = status.members.filter(isMeant)
    return meant.isEmpty
      ? nil : meant.map { Columns.printable($0.name, limit: 24) }.joined(separator: ", ")
  }

  private func state(_ device: NodeStatus.Device) -> (String, Style.Tone) {
    if let revocation = device.revocation {
      let revokers = revocation.revokers.map(name).joined(separator: ", ")
      let time = Humane.ago(revocation.milliseconds, now: nowMilliseconds)
      return ("taken out \(time) by \(revokers)", .bad)
    }
    if device.enroller == nil { return ("out: nobody vouches for it", .bad) }
    return status.state(of: device, now: nowMilliseconds)
  }

  private func enroller(_ device: NodeStatus.Device) -> String {
    switch device.enroller {
    case .creation?: "creation"
    case .recoveryKey?: "recovery key"
    case .device(let id)?: name(id)
    case nil: ""
    }
  }

  private func heard(_ device: NodeStatus.Device) -> String {
    device.lastSeenMilliseconds.map { Humane.ago($0, now: nowMilliseconds) }
      ?? (device.wasHeard ? "" : "never")
  }

  private func has(_ device: NodeStatus.Device) -> String {
    guard !device.behind.isEmpty else { return "" }
    let missing = device.behind.values.reduce(UInt64(0)) { $0 &+ $1 }
    return missing == 0 ? "everything" : "lacks \(Humane.count(Int(clamping: missing)))"
  }

  private func address(_ device: NodeStatus.Device) -> String {
    let address = status.session(with: device)?.address ?? device.addresses.first
    return address.map { Columns.printable($0) } ?? ""
  }

  private func name(_ id: DeviceID) -> String { status.name(of: id, limit: 24) }

  var document: Document { .versioned(["devices": .of(status.devices)]) }
}
