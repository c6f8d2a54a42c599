import Kith
import KithStorage

struct DirectoryCheck: Check {
  static let name = "directory"

  struct Sight: Sendable {
    /// Whether a passphrase protects the secrets; nil if unknown.
    var isUnderPassphrase: Bool?
    /// The paths of damaged databases that were rebuilt.
    var damaged: [String] = []
  }

  func look(at target: DiagnosisTarget) -> Sight {
    Sight(
      isUnderPassphrase: try? Node.isUnderPassphrase(directory: target.directory),
      damaged: DeviceDirectory.damagedDatabases(target.directory))
  }

  func findings(_ sight: Sight, of target: DiagnosisTarget) -> [Finding] {
    state(sight.isUnderPassphrase, of: target)
      + sight.damaged.map { path in
        finding(
          .note, tried: "looked for damaged databases",
          seen: "the database was damaged and made anew; the damaged one is \(path)",
          advice: "check the disk; once nothing is missing (kith status), remove that file")
      }
  }

  private func state(_ isUnderPassphrase: Bool?, of target: DiagnosisTarget) -> [Finding] {
    let lock =
      switch isUnderPassphrase {
      case true?: "secrets under a passphrase"
      case false?: "secrets under no passphrase"
      case nil: "secrets not looked at"
      }
    switch target.device {
    case .running(let report):
      let owner = report.processID.map { " (process \($0))" } ?? ""
      return [
        finding(
          .good, tried: "asked the node of \(target.directory)",
          seen: "it runs\(owner), and found modes, owners and structure sound at its start; \(lock)"
        )
      ] + signedOut(target) + problems(report)
    case .opened(let report):
      return [
        finding(
          .good, tried: "opened \(target.directory)",
          seen: "modes, owners and structure are sound; \(lock)"),
        finding(
          .note, tried: "asked for a node in the directory", seen: "none runs",
          advice: target.isSignedOut ? nil : "start it: kith run"),
      ] + signedOut(target) + problems(report)
    case .none where target.isSignedOut: return signedOut(target)
    case .none:
      return [
        finding(
          .note, tried: "opened \(target.directory)", seen: "it holds no device",
          advice: "kith account create, or kith join")
      ]
    case .failed(let error) where error.code == .passphrase && isUnderPassphrase == true:
      return [
        finding(
          .unknown, tried: "opened \(target.directory)", seen: error.description,
          advice: "to look into it: kith doctor --passphrase-file FILE")
      ]
    case .failed(let error):
      return [
        finding(
          .problem, tried: "opened \(target.directory)",
          seen: "it cannot be opened (\(error.code))", advice: error.description)
      ]
    }
  }

  private func signedOut(_ target: DiagnosisTarget) -> [Finding] {
    guard target.isSignedOut else { return [] }
    return [
      finding(
        .note, tried: "looked who is signed in",
        seen: "nobody: writes stay on this host", advice: CommonOptions.signingIn)
    ]
  }

  private func problems(_ report: NodeStatus) -> [Finding] {
    findings(of: report.problems.filter { !$0.isOfClocks })
  }
}
