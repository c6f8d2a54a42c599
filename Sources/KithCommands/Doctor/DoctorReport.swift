import KithTerminal

/// What `kith doctor` says.
struct DoctorReport: Equatable, Sendable {
  /// What all checks found, in their order.
  var findings: [Finding]

  /// Whether nothing is to be mended.
  var isHealthy: Bool { problems == 0 }

  /// How many things are to be mended.
  var problems: Int { findings.count { $0.verdict == .problem } }

  /// All checks, in the order in which they are told.
  private static let checks: [any Check] = [
    DirectoryCheck(), DiskCheck(), ClockCheck(), NetworkCheck(), PortCheck(), MulticastCheck(),
    FirewallCheck(), RosterCheck(), VersionsCheck(),
  ]

  /// Examines a directory and its host, one thing after another: how long writing takes would suffer
  /// from the others.
  static func examine(_ patient: Patient) async -> Self {
    var findings: [Finding] = []
    for check in checks { findings += await check.examine(patient) }
    return Self(findings: findings)
  }

  /// The report for people: a line a finding, and one below it where there is something to do.
  func text(_ style: Style) -> String {
    var table = Table([("", .left), ("", .left), ("", .left)])
    for finding in findings {
      table.add([
        Table.Cell(finding.verdict.rawValue, finding.verdict.tone),
        Table.Cell(finding.check, .strong), Table.Cell("\(finding.tried): \(finding.seen)"),
      ])
      if let advice = finding.advice {
        table.add([Table.Cell(""), Table.Cell(""), Table.Cell("→ \(advice)", .faint)])
      }
    }
    return table.text(style)
  }

  /// The report for programs.
  var document: Document {
    .versioned(["findings": .list(findings.map(\.document)), "healthy": .bool(isHealthy)])
  }
}
