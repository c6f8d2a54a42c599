import Kith
import KithTerminal

struct Finding: Equatable, Sendable {
  enum Verdict: String, CaseIterable, Sendable {
    case good = "ok"
    /// Worth knowing, and not a problem in itself.
    case note
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

  var check: String
  var verdict: Verdict
  var tried: String
  var seen: String
  /// Nil if none is needed.
  var advice: String?

  var document: Document {
    .object([
      "advice": .string(advice), "check": .string(check), "seen": .string(seen),
      "tried": .string(tried), "verdict": .string(verdict.rawValue),
    ])
  }
}

/// Looking changes nothing. Judging uses only the sight, so that tests reach every verdict.
protocol Check: Sendable {
  associatedtype Sight: Sendable

  /// One word.
  static var name: String { get }

  /// May block.
  func look(at target: DiagnosisTarget) async -> Sight

  /// In the order of the report.
  func findings(_ sight: Sight, of target: DiagnosisTarget) -> [Finding]
}

extension Check {
  func examine(_ target: DiagnosisTarget) async -> [Finding] {
    findings(await look(at: target), of: target)
  }

  func finding(
    _ verdict: Finding.Verdict, tried: String, seen: String, advice: String? = nil
  ) -> Finding {
    Finding(check: Self.name, verdict: verdict, tried: tried, seen: seen, advice: advice)
  }

  /// The device judges these itself; `kith status` shows the same.
  func findings(of problems: [NodeStatus.Problem]) -> [Finding] {
    problems.map {
      finding(
        .problem, tried: "asked what is wrong", seen: "the device says so",
        advice: Columns.printable($0.description))
    }
  }
}
