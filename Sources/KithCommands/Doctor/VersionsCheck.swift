import Kith
import KithCore
import KithTerminal

struct VersionsCheck: Check {
  static let name = "versions"

  func look(at target: DiagnosisTarget) {}

  func findings(_ sight: Void, of target: DiagnosisTarget) -> [Finding] {
    let own = Software.version
    let others = (target.report?.others ?? []).compactMap { device in
      device.software.map { (name: device.name, version: $0) }
    }
    let different = others.filter { $0.version != own }
    guard different.isEmpty else {
      return different.map { name, version in
        finding(
          .note, tried: "asked \(Columns.printable(name, limit: 64)) for its version",
          seen: "kith \(Columns.printable(version, limit: 32)); this is kith \(own)",
          advice: "use the newer one on both, when it suits")
      }
    }
    return [
      finding(
        .good, tried: "asked this program and \(Format.count(others.count, "other device"))",
        seen: "kith \(own)")
    ]
  }
}
