import KithTerminal

/// The result of a check: the attempt, the observation, and the advice.
struct Finding: Equatable, Sendable {
  /// The severity of a finding.
  enum Verdict: String, CaseIterable, Sendable {
    /// All is well.
    case good = "ok"
    /// Worth knowing, and not a problem in itself.
    case note
    /// A problem to solve.
    case problem
    /// It could not be checked.
    case unknown

    var tone: Style.Tone {
      switch self {
      case .good: .good
      case .note: .warning
      case .problem: .bad
      case .unknown: .faint
      }
    }
  }

  /// The name of the check, in one word.
  var check: String
  var verdict: Verdict
  /// The attempt.
  var tried: String
  /// The observation.
  var seen: String
  /// The advice; nil: none is needed.
  var advice: String?

  var document: Document {
    .object([
      "advice": .string(advice), "check": .string(check), "seen": .string(seen),
      "tried": .string(tried), "verdict": .string(verdict.rawValue),
    ])
  }
}

/// One check of `kith doctor`. Observing changes nothing; judging uses only the observation, so
/// every verdict can be tested.
protocol Check: Sendable {
  associatedtype Sight: Sendable

  /// The name of the check, in one word.
  static var name: String { get }

  /// Observes; it may block.
  func look(at patient: Patient) async -> Sight

  /// Returns the findings for an observation, in the order of the report.
  func findings(_ sight: Sight, of patient: Patient) -> [Finding]
}

extension Check {
  /// Observes, and judges.
  func examine(_ patient: Patient) async -> [Finding] {
    findings(await look(at: patient), of: patient)
  }

  func finding(
    _ verdict: Finding.Verdict, tried: String, seen: String, advice: String? = nil
  ) -> Finding {
    Finding(check: Self.name, verdict: verdict, tried: tried, seen: seen, advice: advice)
  }
}
