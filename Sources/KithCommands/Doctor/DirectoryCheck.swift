import Kith

struct DirectoryCheck: Check {
  static let name = "directory"

  /// Whether a passphrase protects the secrets; nil if unknown.
  typealias Sight = Bool?

  func look(at patient: Patient) -> Bool? {
    try? Node.isUnderPassphrase(directory: patient.directory)
  }

  func findings(_ isUnderPassphrase: Bool?, of patient: Patient) -> [Finding] {
    let lock =
      switch isUnderPassphrase {
      case true?: "secrets under a passphrase"
      case false?: "secrets under no passphrase"
      case nil: "secrets not looked at"
      }
    switch patient.device {
    case .running(let report):
      let owner = report.processID.map { " (process \($0))" } ?? ""
      return [
        finding(
          .good, tried: "asked the node of \(patient.directory)",
          seen: "it runs\(owner), and found modes, owners and structure sound at its start; \(lock)"
        )
      ] + signedOut(patient) + problems(report)
    case .opened(let report):
      return [
        finding(
          .good, tried: "opened \(patient.directory)",
          seen: "modes, owners and structure are sound; \(lock)"),
        finding(
          .note, tried: "asked for a node in the directory", seen: "none runs",
          advice: patient.isSignedOut ? nil : "start it: kith run"),
      ] + signedOut(patient) + problems(report)
    case .none where patient.isSignedOut: return signedOut(patient)
    case .none:
      return [
        finding(
          .note, tried: "opened \(patient.directory)", seen: "it holds no device",
          advice: "kith account create, or kith join")
      ]
    case .failed(let error) where error.code == .passphrase && isUnderPassphrase == true:
      return [
        finding(
          .unknown, tried: "opened \(patient.directory)", seen: error.description,
          advice: "to look into it: kith doctor --passphrase-file FILE")
      ]
    case .failed(let error):
      return [
        finding(
          .problem, tried: "opened \(patient.directory)",
          seen: "it cannot be opened (\(error.code))", advice: error.description)
      ]
    }
  }

  private func signedOut(_ patient: Patient) -> [Finding] {
    guard patient.isSignedOut else { return [] }
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
