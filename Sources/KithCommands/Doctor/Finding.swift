import KithTerminal

/// What a check found: what was tried, what was seen, and what to do about it.
struct Finding: Equatable, Sendable {
  /// How good it is.
  enum Verdict: String, CaseIterable, Sendable {
    /// As it should be.
    case good = "ok"
    /// Worth knowing; not wrong in itself.
    case note
    /// To be mended.
    case problem
    /// It could not be looked at.
    case unknown

    /// The tone in which a terminal shows it.
    var tone: Style.Tone {
      switch self {
      case .good: .good
      case .note: .warning
      case .problem: .bad
      case .unknown: .faint
      }
    }
  }

  /// What was looked at, in a word.
  var check: String
  /// How good it is.
  var verdict: Verdict
  /// What was tried.
  var tried: String
  /// What was seen.
  var seen: String
  /// What to do; nil: nothing.
  var advice: String?

  /// The finding for programs.
  var document: Document {
    .object([
      "advice": .string(advice), "check": .string(check), "seen": .string(seen),
      "tried": .string(tried), "verdict": .string(verdict.rawValue),
    ])
  }
}

/// One thing that `kith doctor` looks at. Looking changes nothing; judging looks at nothing, so that
/// every verdict has a test.
protocol Check: Sendable {
  /// What was seen.
  associatedtype Sight: Sendable

  /// What is looked at, in a word.
  static var name: String { get }

  /// Looks; it may block for as long as that takes.
  func look(at patient: Patient) async -> Sight

  /// What follows from what was seen; in the order in which it is told.
  func findings(_ sight: Sight, of patient: Patient) -> [Finding]
}

extension Check {
  /// Looks, and judges.
  func examine(_ patient: Patient) async -> [Finding] {
    findings(await look(at: patient), of: patient)
  }

  /// A finding of this check.
  func finding(
    _ verdict: Finding.Verdict, tried: String, seen: String, advice: String? = nil
  ) -> Finding {
    Finding(check: Self.name, verdict: verdict, tried: tried, seen: seen, advice: advice)
  }
}
