import Kith
import KithTerminal

/// The carriers, as the running node knows them. `kith carrier check` tries them.
struct CarrierCheck: Check {
  static let name = "carriers"

  func look(at target: DiagnosisTarget) async -> [NodeStatus.Carrier] {
    target.report?.carriers ?? []
  }

  func findings(_ sight: [NodeStatus.Carrier], of target: DiagnosisTarget) -> [Finding] {
    guard target.isRunning else { return [] }
    return sight.map { carrier in
      let tried = "asked about \(Columns.printable(carrier.location))"
      if let problem = carrier.problem {
        return finding(
          .problem, tried: tried, seen: "it cannot be used",
          advice: "\(Columns.printable(problem)) Try it: kith carrier check")
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
