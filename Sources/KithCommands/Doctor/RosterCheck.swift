import Kith
import KithTerminal

struct RosterCheck: Check {
  static let name = "roster"

  /// In milliseconds.
  static let longSilence: UInt64 = 30 * 86_400_000

  func look(at patient: Patient) {}

  func findings(_ sight: Void, of patient: Patient) -> [Finding] {
    if patient.isSignedOut { return [] }
    let tried = "asked for the account's devices"
    guard let report = patient.report else {
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
    guard patient.isRunning else {
      return [
        finding(
          .unknown, tried: tried,
          seen: "\(Humane.count(others.count, "other")); without a node nobody is met")
      ]
    }
    let away = others.filter {
      !report.isInTouch(with: $0, now: patient.nowMilliseconds)
    }
    var findings = [
      finding(
        away.count == others.count ? .note : .good, tried: tried,
        seen: "\(others.count - away.count) of \(Humane.count(others.count, "other")) in touch",
        advice: away.count == others.count
          ? "see that a node runs there, that the networks reach each other, and the firewall on "
            + "both; kith run --peer HOST:PORT names an address" : nil)
    ]
    findings += away.map { absence($0, report, now: patient.nowMilliseconds) }
    for id in Set(report.stores.flatMap(\.policyMismatches)).sorted() {
      findings.append(
        finding(
          .problem, tried: "compared the limits of stores with \(report.name(of: id, limit: 64))",
          seen: "they differ, and those stores are not exchanged",
          advice: "have the programs on both give the same limits"))
    }
    return findings
  }

  private func absence(
    _ device: NodeStatus.Device, _ report: NodeStatus, now: UInt64
  ) -> Finding {
    let tried = "waited for \(Columns.printable(device.name, limit: 64))"
    if device.isConnected {
      return finding(.note, tried: tried, seen: report.state(of: device, now: now).text)
    }
    guard device.wasHeard else {
      return finding(
        .note, tried: tried,
        seen: "never heard of since it joined \(Humane.ago(device.enrolledMilliseconds, now: now))",
        advice: "start its node: kith run; if none of your devices is that, as where joining broke "
          + "off, take it out: kith devices revoke")
    }
    let heard = device.lastSeenMilliseconds
    let isLong = now - min(heard ?? device.enrolledMilliseconds, now) > Self.longSilence
    return finding(
      isLong ? .note : .good, tried: tried,
      seen: heard.map { "heard \(Humane.ago($0, now: now))" }
        ?? "not heard since the node started",
      advice: isLong ? "if it is lost, take it out of the account: kith devices revoke" : nil)
  }
}
