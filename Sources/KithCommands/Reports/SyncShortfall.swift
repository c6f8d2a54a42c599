package import Kith
import KithCore
import KithTerminal

/// Why `kith sync` did not get what it was asked for, and what to do.
struct SyncShortfall: CustomStringConvertible {
  var report: SyncReport
  var status: NodeStatus
  var store: StoreIdentifier
  /// How many devices were to have everything; nil: all.
  var wanted: Int?
  var nowMilliseconds: UInt64

  static let noOthers = "no other device is in the account; add one with: kith invite"

  /// Problems of this device that keep its writes from the others, however long one waits.
  private static let obstacles: [KithError.Code] = [
    .revoked, .tooManyIncarnations, .dataAhead, .diskFull, .readOnly, .inputOutput,
  ]

  var description: String {
    let (have, missing) = (report.complete.count, report.incomplete)
    if have == 0, missing.isEmpty, status.carriers.isEmpty { return Self.noOthers }
    if let wanted, wanted > have + missing.count {
      return "\(wanted) other devices are asked for, and the account has "
        + "\(have + missing.count); add some with: kith invite"
    }
    let obstacles = status.problems.filter { Self.obstacles.contains($0.code) }
      .map { Columns.phrase($0.description) }
    // Waiting for the others does not help, either.
    guard obstacles.isEmpty else { return obstacles.joined(separator: "; ") }
    if let own = status.stores.first(where: { $0.identifier == store }), own.isOverLimit {
      return own.remarks { status.name(of: $0) } + "; remove some of it"
    }
    return (unpublished + devices(missing) + carriers).joined(separator: "; ")
  }

  private var unpublished: [String] {
    report.hasUnpublishedWrites ? ["the writes of this device wait for a peer to be published"] : []
  }

  private func devices(_ missing: [DeviceID]) -> [String] {
    var (away, slow): ([DeviceID], [DeviceID]) = ([], [])
    var reasons: [String] = []
    for device in missing {
      if let reason = reason(device) {
        reasons.append(reason)
      } else if status.devices.contains(where: { $0.id == device && $0.isConnected }) {
        slow.append(device)
      } else {
        away.append(device)
      }
    }
    if !away.isEmpty {
      reasons.append(
        "\(names(away)) \(away.count == 1 ? "is" : "are") not connected; start "
          + "\(away.count == 1 ? "its node" : "their nodes") with: kith run" + calls(away))
    }
    if !slow.isEmpty {
      reasons.append(
        "\(names(slow)) \(slow.count == 1 ? "does" : "do") not have everything yet; wait longer "
          + "with --timeout")
    }
    return reasons
  }

  /// The results of the last calls of devices that are away.
  private func calls(_ away: [DeviceID]) -> String {
    let calls = away.compactMap { status.unreached($0).first?.failure(now: nowMilliseconds) }
    return calls.isEmpty ? "" : "; \(calls.joined(separator: "; "))"
  }

  /// Why a device does not get the store, however long one waits; nil: waiting may help.
  private func reason(_ device: DeviceID) -> String? {
    let name = names([device])
    if let difference = status.clock.differences.first(where: { $0.device == device }) {
      return "the clocks of \(name) and this device differ, \(name)'s is "
        + "\(NodeStatus.clockText(difference.milliseconds)), so stores are not exchanged; see: "
        + "kith clock"
    }
    let peer = status.devices.first { $0.id == device }
    if peer?.storesRejectedThere.contains(store) == true {
      return
        "\(name) has \(Limits.stores) stores, as many as a device keeps, and does not accept this "
        + "one; use another store"
    }
    let mismatches = status.stores.first { $0.identifier == store }?.policyMismatches ?? []
    if mismatches.contains(device) {
      return "\(name) has other limits for the store, so it is not exchanged; have the programs on "
        + "both give the same limits"
    }
    return nil
  }

  /// The reasons for which carriers wait, if no number of devices was asked for.
  private var carriers: [String] {
    guard wanted == nil else { return [] }
    return status.carriers.map { carrier in
      let location = Columns.printable(carrier.location)
      return carrier.problem.map { "\(location): \(Columns.phrase($0))" }
        ?? "\(location) does not hold it yet; wait longer with --timeout"
    }
  }

  private func names(_ devices: [DeviceID]) -> String {
    devices.map { status.name(of: $0, limit: 64) }.joined(separator: ", ")
  }
}

extension SyncReport {
  func text(
    _ style: Style, store: StoreIdentifier, status: NodeStatus, nowMilliseconds now: UInt64
  ) -> String {
    var lines = complete.map { style(.good, "up to date  ") + status.name(of: $0) }
    lines += incomplete.map { style(.warning, "behind      ") + status.name(of: $0) }
    lines += carriers.map { carrier in
      style(.good, "held by     ") + Columns.printable(carrier.location) + ", as seen "
        + Format.ago(carrier.heldSinceMilliseconds, now: now)
    }
    if let own = status.stores.first(where: { $0.identifier == store }), own.isInPart {
      lines.append(style(.warning, "here        ") + own.partText { status.name(of: $0) })
    }
    return lines.joined(separator: "\n")
  }

  package func document(store: String, status: NodeStatus) -> Document {
    Document.versioned([
      "carriers": .list(
        carriers.map {
          .object([
            "location": .string($0.location),
            "heldSinceMilliseconds": .int($0.heldSinceMilliseconds),
          ])
        }),
      "complete": .strings(complete.map(status.plainName)),
      "incomplete": .strings(incomplete.map(status.plainName)),
      "unpublished": .bool(hasUnpublishedWrites), "store": .string(store),
    ])
  }
}
