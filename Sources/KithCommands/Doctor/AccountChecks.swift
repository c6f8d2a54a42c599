import Kith
import KithCore
import KithTerminal

struct RosterCheck: Check {
  static let name = "roster"

  /// In milliseconds.
  static let longSilence: UInt64 = 30 * 86_400_000
  /// Devices that are on the link meet within this, in milliseconds.
  static let longestMeeting: UInt64 = 30_000
  /// Devices that were switched off come back within this, in milliseconds.
  static let usualAbsence: UInt64 = 7 * 86_400_000
  /// So many devices are hardly all switched off at once.
  static let crowd = 3

  func look(at target: DiagnosisTarget) {}

  func findings(_ sight: Void, of target: DiagnosisTarget) -> [Finding] {
    if target.isSignedOut { return [] }
    let tried = "asked for the account's devices"
    guard let report = target.report else {
      return [finding(.unknown, tried: tried, seen: "the directory could not be looked into")]
    }
    let others = report.others
    guard !others.isEmpty else {
      return [
        finding(
          .note, tried: tried, seen: "this is the only one",
          advice: "add another: kith invite here, kith join there")
      ]
    }
    guard !report.isRevoked else {
      return [
        finding(
          .note, tried: tried,
          seen: "this one was revoked: it exchanges nothing with the "
            + Format.count(others.count, "other"))
      ]
    }
    guard target.isRunning else {
      return [
        finding(
          .problem, tried: tried,
          seen:
            "\(Format.count(others.count, "other")), and no node runs here: nothing is exchanged",
          advice: "start it: kith run, or as a service: kith service install")
      ]
    }
    let now = target.nowMilliseconds
    let away = others.filter { !report.isConnected(to: $0, now: now) }
    let isAlone = away.count == others.count
    let mayBeOff = away.count < Self.crowd && away.allSatisfy { self.mayBeOff($0, report, now) }
    // Devices that exchange through a carrier need not meet.
    let verdict: Finding.Verdict =
      !isAlone ? .good : mayBeOff || report.hasCarrier ? .note : .problem
    var findings = [
      finding(
        verdict, tried: tried, seen: report.connection(now: now),
        advice: isAlone ? (mayBeOff ? "if one is on: " : "") + advice(on: report) : nil)
    ]
    findings += away.map { absence($0, report, now: now) }
    findings += report.namedInVain.map { address in
      finding(
        .note, tried: "called \(Columns.printable(address.address)), as named",
        seen: address.reason.map { Columns.sentence($0) } ?? address.result,
        advice: address.advice.map { "\($0); to stop: \(address.forgetting)" })
    }
    for store in report.stores where store.isOverLimit || !store.authorsOverLimit.isEmpty {
      findings.append(
        finding(
          .note, tried: "looked at the store \(Columns.printable(store.identifier.rawValue))",
          seen: store.remarks { report.name(of: $0, limit: 64) },
          advice: store.isOverLimit || store.isOpenedHere
            ? "remove keys there, or use smaller values" : nil))
    }
    for id in Set(report.stores.flatMap(\.policyMismatches)).sorted() {
      findings.append(
        finding(
          .problem, tried: "compared the limits of stores with \(report.name(of: id, limit: 64))",
          seen: "they differ, and those stores are not exchanged",
          advice: "have the programs on both give the same limits"))
    }
    return findings
  }

  /// Whether it is no sign of a problem that a device is away: it was met, not too long ago, and is
  /// not heard on the link.
  private func mayBeOff(_ device: NodeStatus.Device, _ report: NodeStatus, _ now: UInt64) -> Bool {
    let since = device.lastSeenMilliseconds ?? device.behindSinceMilliseconds ?? now
    let isHeard = report.discovery?.neighbours.contains {
      $0.device == device.id
        && now - min($0.milliseconds, now) >= (device.lastSeenMilliseconds ?? 0)
          + Self.longestMeeting
    }
    return device.wasSeen && !device.isConnected && isHeard != true
      && now - min(since, now) < Self.usualAbsence
  }

  private func absence(
    _ device: NodeStatus.Device, _ report: NodeStatus, now: UInt64
  ) -> Finding {
    let tried = "looked for \(Columns.printable(device.name, limit: 64))"
    let calls = report.unreached(device.id).map { "; \($0.failure(now: now))" }.joined()
    if device.isConnected {
      return finding(.note, tried: tried, seen: report.state(of: device, now: now).text)
    }
    guard device.wasSeen else {
      return finding(
        .note, tried: tried,
        seen: "never seen since it joined \(Format.moment(device.enrolledMilliseconds, now: now))"
          + calls,
        advice: "start its node: kith run; if you have no such device, because joining broke off, "
          + "revoke it: kith devices revoke")
    }
    let heard = device.lastSeenMilliseconds
    let isLong = now - min(heard ?? device.enrolledMilliseconds, now) > Self.longSilence
    let seen = heard.map { "last seen \(Format.ago($0, now: now))" }
    return finding(
      .note, tried: tried, seen: (seen ?? "not seen since the node started") + calls,
      advice: isLong
        ? "if it is lost, revoke it: kith devices revoke"
        : report.unreached(device.id).lazy.compactMap(\.advice).first)
  }

  /// For a device that is connected to no other.
  private func advice(on report: NodeStatus) -> String {
    report.problems.contains(where: \.isOfClocks)
      ? "set the clocks right; see the line on the clock"
      : "see that a node runs there, that the networks reach each other, and the firewall on both; "
        + "kith devices meet HOST:PORT names an address"
  }
}

/// The carriers, as the running node knows them. `kith carrier check` tries them.
struct CarrierCheck: Check {
  static let name = "carriers"

  func look(at target: DiagnosisTarget) async -> [NodeStatus.Carrier] {
    target.report?.carriers ?? []
  }

  func findings(_ sight: [NodeStatus.Carrier], of target: DiagnosisTarget) -> [Finding] {
    guard target.isRunning else { return [] }
    return sight.enumerated().map { index, carrier in
      let tried = "asked about \(Columns.printable(carrier.location))"
      // The device exchanges by the others; see `usedCarriers`.
      guard index < Limits.carriers else {
        return finding(
          .note, tried: tried, seen: "it is above the limit",
          advice: carrier.problem.map { Columns.sentence($0) })
      }
      if let problem = carrier.problem {
        return finding(
          .problem, tried: tried, seen: "it cannot be used",
          advice: "\(Columns.sentence(problem)) Try it: kith carrier check")
      }
      if carrier.vanished > 0 {
        return finding(
          .problem, tried: tried,
          seen:
            "\(Format.count(carrier.vanished, "object")) vanished, and others do not bring their data",
          advice:
            "see who else can delete there: another program, a rule of the storage, a device that "
            + "was revoked; then change the password: kith carrier password")
      }
      guard carrier.heldSinceMilliseconds != nil else {
        return finding(
          .note, tried: tried, seen: "it does not hold everything yet",
          advice: carrier.remarks.isEmpty ? "put it there now: kith sync" : carrier.remarks)
      }
      return finding(.good, tried: tried, seen: "it holds everything of this device")
    }
  }
}
