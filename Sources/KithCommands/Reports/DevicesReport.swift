import Kith
import KithTerminal

struct DevicesReport: Equatable, Sendable {
  var status: NodeStatus
  /// Whether people see revoked devices; the document has all.
  var showsRevoked = false
  /// Only devices that are not known to have everything, also in the document.
  var isOnlyBehind = false
  /// Whether people see a second table, for rarer questions.
  var isLong = false
  var nowMilliseconds: UInt64

  private static let mostNames = 10

  private var devices: [NodeStatus.Device] {
    status.devices.filter { device in
      (showsRevoked || device.isMember)
        && (!isOnlyBehind || device.isMember && !device.isThisDevice && device.missing != 0)
    }
    .sorted { ($0.name.lowercased(), $0.id) < ($1.name.lowercased(), $1.id) }
  }

  func text(_ style: Style) -> String {
    var everyday = Table([
      ("DEVICE", .cut), ("STATE", .left), ("HEARD", .right), ("HAS", .left), ("ADDRESS", .wrapped),
    ])
    var rarer = Table([
      ("DEVICE", .cut), ("FINGERPRINT", .left), ("ENROLLED", .right), ("BY", .cut),
      ("VERSION", .left), ("CLOCK", .right),
    ])
    let devices = devices
    for device in devices {
      let (state, tone) = state(device)
      let name = Table.Cell(Columns.printable(device.name, limit: 64), .strong)
      let isOther = !device.isThisDevice && device.isMember
      everyday.add([
        name, Table.Cell(state, tone), Table.Cell(isOther ? heard(device) : ""),
        Table.Cell(isOther ? has(device) : ""), Table.Cell(isOther ? address(device) : ""),
      ])
      rarer.add([
        name, Table.Cell(device.fingerprint),
        Table.Cell(Format.ago(device.enrolledMilliseconds, now: nowMilliseconds)),
        Table.Cell(enroller(device)),
        Table.Cell(device.software.map { Columns.printable($0, limit: 16) } ?? ""),
        Table.Cell(isOther ? device.clockOffsetMilliseconds.map(Format.offset) ?? "" : ""),
      ])
    }
    let tables = devices.isEmpty ? [] : isLong ? [everyday, rarer] : [everyday]
    return (tables.map { $0.text(style) } + [summary(style), advice(style)])
      .filter { !$0.isEmpty }.joined(separator: "\n\n")
  }

  /// How many are connected, and which lack something.
  private func summary(_ style: Style) -> String {
    let others = status.others
    guard !others.isEmpty else { return "" }
    var parts = [status.connection(now: nowMilliseconds)]
    let behind = others.filter { $0.missing ?? 0 > 0 }
    let unknown = others.filter { $0.missing == nil }
    if !behind.isEmpty { parts.append("behind: \(names(behind))") }
    if !unknown.isEmpty { parts.append("not known: \(names(unknown))") }
    if behind.isEmpty, unknown.isEmpty { parts.append("all are up to date") }
    return style.paragraph(
      behind.isEmpty && unknown.isEmpty ? .good : .warning, parts.joined(separator: "; "))
  }

  private func names(_ devices: [NodeStatus.Device]) -> String {
    let names = devices.map { Columns.printable($0.name, limit: 24) }.sorted()
    let rest = names.count - Self.mostNames
    return names.prefix(Self.mostNames).joined(separator: ", ")
      + (rest > 0 ? " and \(Format.count(rest)) more" : "")
  }

  /// Notes for a person: named addresses that lead nowhere, and devices never heard of.
  private func advice(_ style: Style) -> String {
    var lines = status.namedInVain.map { address in
      "\(address.failure(now: nowMilliseconds)); to stop calling it: kith devices forget "
        + Columns.printable(address.address)
    }
    let unheard = status.members.filter { !$0.wasHeard }
    if !unheard.isEmpty {
      lines.append(
        "Never heard of: \(names(unheard)). If none of your devices is that, as where joining broke "
          + "off, take it out: kith devices revoke")
    }
    let unseen = Set(status.stores.flatMap(\.removalsUnseenBy))
    let late = status.members.filter { unseen.contains($0.id) }
    if !late.isEmpty {
      lines.append(
        "Not seen many removals: \(names(late)). Start it, or take it out: kith devices revoke")
    }
    return lines.map { style.paragraph(.warning, $0) }.joined(separator: "\n")
  }

  private func state(_ device: NodeStatus.Device) -> (String, Style.Tone) {
    if let revocation = device.revocation {
      let revokers = revocation.revokers.map(name).joined(separator: ", ")
      let time = Format.ago(revocation.milliseconds, now: nowMilliseconds)
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
    device.lastSeenMilliseconds.map { Format.ago($0, now: nowMilliseconds) }
      ?? (device.wasHeard ? "" : "never")
  }

  private func has(_ device: NodeStatus.Device) -> String {
    guard let missing = device.missing else { return "" }
    let stores = device.storesItLeavesOut.count
    if stores > 0 { return "lacks \(Format.count(stores, "store"))" }
    return missing == 0 ? "everything" : "lacks \(Format.count(missing))"
  }

  /// Of the session; of a device that is away, where it was called last and what came of it.
  private func address(_ device: NodeStatus.Device) -> String {
    if let session = status.session(with: device) { return Columns.printable(session.address) }
    return status.unreached(device.id).first?.failure(now: nowMilliseconds)
      ?? device.addresses.first.map { Columns.printable($0) } ?? ""
  }

  private func name(_ id: DeviceID) -> String { status.name(of: id, limit: 24) }

  var document: Document {
    .versioned(["devices": .of(isOnlyBehind ? devices : status.devices)])
  }
}

extension NodeStatus.Device {
  /// How many change sets it is known to lack; nil: nothing was heard of it.
  var missing: Int? {
    behind.isEmpty ? nil : Int(clamping: behind.values.reduce(UInt64(0)) { $0 &+ $1 })
  }
}
