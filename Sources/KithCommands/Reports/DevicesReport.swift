package import Kith
package import KithCore
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
      (showsRevoked || device.isMember || device.isThisDevice)
        && (!isOnlyBehind || device.isMember && !device.isThisDevice && device.missing != 0)
    }
    .sorted { ($0.name.lowercased(), $0.id) < ($1.name.lowercased(), $1.id) }
  }

  func text(_ style: Style) -> String {
    var everyday = Table([
      ("DEVICE", .whole), ("STATE", .left), ("SEEN", .right), ("HAS", .left), ("ADDRESS", .wrapped),
    ])
    var rarer = Table([
      ("DEVICE", .whole), ("FINGERPRINT", .left), ("ENROLLED", .right), ("BY", .cut),
      ("VERSION", .cut), ("CLOCK", .right),
    ])
    let devices = devices
    for device in devices {
      let (state, tone) = state(device)
      let name = Table.Cell(Columns.printable(device.name), .strong)
      let isOther = !device.isThisDevice && device.isMember
      everyday.add([
        name, Table.Cell(state, tone), Table.Cell(isOther ? heard(device) : ""),
        Table.Cell(isOther ? has(device) : ""), Table.Cell(isOther ? address(device) : ""),
      ])
      rarer.add([
        name, Table.Cell(device.fingerprint),
        Table.Cell(Format.moment(device.enrolledMilliseconds, now: nowMilliseconds)),
        Table.Cell(enroller(device)),
        Table.Cell(device.software.map { Columns.printable($0) } ?? ""),
        Table.Cell(isOther ? device.clockOffsetMilliseconds.map(Format.clock) ?? "" : ""),
      ])
    }
    let tables = devices.isEmpty ? [] : isLong ? [everyday, rarer] : [everyday]
    return (tables.map { $0.text(style) } + [summary(style), advice(style)])
      .filter { !$0.isEmpty }.joined(separator: "\n\n")
  }

  /// How many are connected, and which lack something.
  private func summary(_ style: Style) -> String {
    if status.isRevoked { return style.paragraph(.bad, KithError.revokedDevice.message) }
    let others = status.others
    guard !others.isEmpty else { return "" }
    var parts = [status.connection(now: nowMilliseconds)]
    let behind = others.filter { $0.missing ?? 0 > 0 }
    let unknown = others.filter { $0.missing == nil }
    if !behind.isEmpty { parts.append("behind: \(names(behind))") }
    if !unknown.isEmpty { parts.append("not known: \(names(unknown))") }
    let areAllKnown = behind.isEmpty && unknown.isEmpty
    if areAllKnown { parts.append(isWhole ? "all are up to date" : "all have what is here") }
    return style.paragraph(
      areAllKnown && isWhole ? .good : .warning, parts.joined(separator: "; "))
  }

  /// Whether this device has each store whole, as far as it knows.
  private var isWhole: Bool { status.storesInPart.isEmpty }

  private func names(_ devices: [NodeStatus.Device]) -> String { list(devices.map(\.name)) }

  private func list(_ texts: [String]) -> String {
    let names = texts.map { Columns.printable($0) }.sorted()
    let rest = names.count - Self.mostNames
    return names.prefix(Self.mostNames).joined(separator: ", ")
      + (rest > 0 ? " and \(Format.count(rest)) more" : "")
  }

  /// Notes for a person: named addresses that lead nowhere, devices never seen, stores in part.
  private func advice(_ style: Style) -> String {
    if status.isRevoked { return "" }
    var lines = status.namedInVain.map { address in
      "\(address.failure(now: nowMilliseconds)); to stop calling it: \(address.forgetting)"
    }
    if !isWhole {
      let stores = status.storesInPart.map(\.rawValue)
      lines.append(
        "In part here: \(list(stores)). The rest of each comes once a program here opens it.")
    }
    let unseen = status.members.filter { !$0.wasSeen }
    if !unseen.isEmpty {
      lines.append(
        "Never seen: \(names(unseen)). If you have no such device, because joining broke off, "
          + "revoke it: kith devices revoke")
    }
    let lateIDs = Set(status.stores.flatMap(\.removalsUnseenBy))
    let late = status.members.filter { lateIDs.contains($0.id) }
    if !late.isEmpty {
      lines.append(
        "Not seen many removals: \(names(late)). Start it, or revoke it: kith devices revoke")
    }
    return lines.map { style.paragraph(.warning, $0) }.joined(separator: "\n")
  }

  private func state(_ device: NodeStatus.Device) -> (String, Style.Tone) {
    if let revocation = device.revocation {
      let revokers = revocation.revokers.map(name).joined(separator: ", ")
      let time = Format.moment(revocation.milliseconds, now: nowMilliseconds)
      return ("revoked \(time) by \(revokers)", .bad)
    }
    if device.enroller == nil {
      return ("not a member: the device that enrolled it was revoked", .bad)
    }
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
      ?? (device.wasSeen ? "" : "never")
  }

  private func has(_ device: NodeStatus.Device) -> String {
    guard let missing = device.missing else { return "" }
    let stores = device.storesRejectedThere.count
    if stores > 0 { return "lacks \(Format.count(stores, "store"))" }
    guard missing == 0 else { return "lacks \(Format.count(missing))" }
    return isWhole ? "everything" : "what is here"
  }

  /// The session's address. If the device is away, where it was called last, and the outcome.
  private func address(_ device: NodeStatus.Device) -> String {
    if let session = status.session(with: device) { return Columns.printable(session.address) }
    return status.unreached(device.id).first?.failure(now: nowMilliseconds)
      ?? device.addresses.first.map { Columns.printable($0) } ?? ""
  }

  private func name(_ id: DeviceID) -> String { status.name(of: id) }

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

/// The report of `kith devices addresses`, also a part of `kith devices`.
struct AddressesReport: Equatable, Sendable {
  var status: NodeStatus
  var nowMilliseconds: UInt64

  func text(_ style: Style) -> String {
    guard !status.addresses.isEmpty else { return "" }
    var table = Table([
      ("ADDRESS", .whole), ("DEVICE", .cut), ("FROM", .left), ("CALLED", .right),
      ("RESULT", .wrapped),
    ])
    for address in status.addresses {
      table.add([
        Table.Cell(Columns.printable(address.address), .strong),
        Table.Cell(address.device.map { status.name(of: $0) } ?? ""),
        Table.Cell(address.source.rawValue, .faint),
        Table.Cell(Format.ago(address.triedMilliseconds, now: nowMilliseconds)),
        Table.Cell(address.result, address.isUnreached ? .warning : .good),
      ])
    }
    return table.text(style)
  }

  var document: Document {
    .versioned(["addresses": .list(status.addresses.map(Document.of))])
  }
}

extension NodeStatus.Address {
  /// The result of the last call, in few words.
  var result: String {
    switch outcome {
    case .met?: "connected"
    case .nothingListens?: "nothing listens there"
    case .noAnswer?: "no answer"
    case .noRoute?: "no route"
    case .unknownHost?: "no such host"
    case .notOfAccount?: "another account or program"
    case .anotherDevice?: "another device"
    case .thisDevice?: "this device itself"
    case .sessionLimit?: "session limit reached"
    case .failed?: reason.map { Columns.sentence($0) } ?? "failed"
    case nil: "not called"
    }
  }

  /// The address, and why nobody was met there.
  func failure(now: UInt64) -> String {
    let time = triedMilliseconds.map { " (\(Format.ago($0, now: now)))" } ?? ""
    return "\(Columns.printable(address)): \(result)\(time)"
  }

  /// The command that forgets the address. A host's name may begin with a hyphen.
  var forgetting: String {
    "kith devices forget " + (address.hasPrefix("-") ? "-- " : "") + Columns.printable(address)
  }

  /// Advice for a person if nobody was met there; nil: nothing more is known.
  var advice: String? {
    let port = address.split(separator: ":").last ?? ""
    return switch outcome {
    case .nothingListens?: "start the node there (kith run), and see that it has this port"
    case .noAnswer?:
      "see that the device is on, and that no firewall keeps TCP port \(port) from it"
    case .noRoute?: "see that both are in one network: ip route"
    case .unknownHost?: "see that the name is right, and that this host finds it"
    case .notOfAccount?: "compare the accounts: kith account list on both"
    case .thisDevice?: "name the other device's address"
    case .anotherDevice?, .sessionLimit?, .failed?, .met?, nil: nil
    }
  }
}

extension NodeStatus {
  /// The addresses of a device at which it was not met, the last called first.
  func unreached(_ device: DeviceID?) -> [Address] {
    addresses.filter { $0.device == device && $0.isUnreached }
      .sorted { $0.triedMilliseconds ?? 0 > $1.triedMilliseconds ?? 0 }
  }

  /// The addresses that a person named and at which no device was met.
  var namedInVain: [Address] { addresses.filter { $0.source == .named && $0.isUnreached } }
}

package enum DuplicateNames {
  /// Sentences about names that several members have, in the order of the names.
  static func notices(_ devices: [NodeStatus.Device]) -> [String] {
    let members = devices.filter(\.isMember)
    return Dictionary(grouping: members) { Array($0.name.utf8) }.values
      .filter { $0.count > 1 }
      .sorted { $0[0].name < $1[0].name }
      .map { group in
        let name = Columns.printable(group[0].name, limit: 64)
        let fingerprints = group.map { Columns.printable($0.fingerprint) }.joined(separator: ", ")
        return
          "\(group.count) devices are called \(name): \(fingerprints). \(advice(group[0].fingerprint))"
      }
  }

  /// A sentence for a device whose name other members have. `devices` may contain the device
  /// itself.
  package static func notice(
    _ name: String, _ fingerprint: String, among devices: [NodeStatus.Device]
  ) -> String? {
    let others = devices.filter {
      $0.isMember && $0.fingerprint != fingerprint && $0.name.utf8.elementsEqual(name.utf8)
    }
    guard !others.isEmpty else { return nil }
    let shown = Columns.printable(name, limit: 64)
    let fingerprints = others.map { Columns.printable($0.fingerprint) }.joined(separator: ", ")
    return "The account has another device called \(shown): \(fingerprints). \(advice(fingerprint))"
  }

  private static func advice(_ fingerprint: String) -> String {
    "To tell them apart: kith devices rename \(Columns.printable(fingerprint)) NAME"
  }
}
