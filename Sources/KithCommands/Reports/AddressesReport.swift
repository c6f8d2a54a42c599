import Kith
import KithCore
import KithTerminal

/// The report of `kith devices addresses`, also a part of `kith devices`.
struct AddressesReport: Equatable, Sendable {
  var status: NodeStatus
  var nowMilliseconds: UInt64

  func text(_ style: Style) -> String {
    guard !status.addresses.isEmpty else { return "" }
    var table = Table([
      ("ADDRESS", .cut), ("DEVICE", .cut), ("FROM", .left), ("CALLED", .right),
      ("RESULT", .wrapped),
    ])
    for address in status.addresses {
      table.add([
        Table.Cell(Columns.printable(address.address), .strong),
        Table.Cell(address.device.map { status.name(of: $0, limit: 24) } ?? ""),
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
    case .noRoom?: "session limit reached"
    case .failed?: reason.map { Columns.printable($0) } ?? "failed"
    case nil: "not called"
    }
  }

  /// The address, and why nobody was met there.
  func failure(now: UInt64) -> String {
    let time = triedMilliseconds.map { " (\(Format.ago($0, now: now)))" } ?? ""
    return "\(Columns.printable(address)): \(result)\(time)"
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
    case .anotherDevice?, .noRoom?, .failed?, .met?, nil: nil
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
