import KithTerminal

struct DoctorReport: Equatable, Sendable {
  var findings: [Finding]

  var isHealthy: Bool { problems == 0 }

  var problems: Int { findings.count { $0.verdict == .problem } }

  private static let checks: [any Check] = [
    DirectoryCheck(), DiskCheck(), ClockCheck(), NetworkCheck(), PortCheck(), MulticastCheck(),
    FirewallCheck(), CarrierCheck(), RosterCheck(), VersionsCheck(),
  ]

  /// One check after another: others would disturb the time of writing.
  static func examine(_ target: DiagnosisTarget) async -> Self {
    var findings: [Finding] = []
    for check in checks { findings += await check.examine(target) }
    return Self(findings: findings)
  }

  func text(_ style: Style) -> String {
    var table = Table()
    for finding in findings {
      table.add([
        Table.Cell(finding.verdict.rawValue, finding.verdict.tone),
        Table.Cell(finding.check, .strong), Table.Cell("\(finding.tried): \(finding.seen)"),
      ])
      if let advice = finding.advice {
        table.add(["", "", Table.Cell("→ \(advice)", .faint)])
      }
    }
    return table.text(style)
  }

  var document: Document {
    .versioned(["findings": .list(findings.map(\.document)), "healthy": .bool(isHealthy)])
  }
}
