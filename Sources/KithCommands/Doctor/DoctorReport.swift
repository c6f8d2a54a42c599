import Kith
import KithTerminal
import Synchronization

struct DoctorReport: Equatable, Sendable {
  var findings: [Finding]

  var isHealthy: Bool { problems == 0 }

  var problems: Int { findings.count { $0.verdict == .problem } }

  /// A revoked device exchanges nothing, so no network and no carrier is in its way.
  static func checks(isRevoked: Bool) -> [any Check] {
    let ofHost: [any Check] = [DirectoryCheck(), DiskCheck(), ClockCheck()]
    let ofExchange: [any Check] = [
      NetworkCheck(), PortCheck(), MulticastCheck(), FirewallCheck(), CarrierCheck(),
    ]
    let ofDevices: [any Check] = [RosterCheck(), VersionsCheck()]
    return ofHost + (isRevoked ? [] : ofExchange) + ofDevices
  }

  /// One check after another: others would disturb the time of writing.
  static func examine(_ target: DiagnosisTarget) async -> Self {
    var findings: [Finding] = []
    for check in checks(isRevoked: target.report?.isRevoked == true) {
      findings += await check.examine(target)
    }
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
        advice: Columns.sentence($0.description))
    }
  }
}

/// The subject of all checks: a directory and its node.
struct DiagnosisTarget: Sendable {
  enum Device: Sendable {
    /// A node is running and answered.
    case running(NodeStatus)
    /// No node is running; the directory was opened for this report.
    case opened(NodeStatus)
    case none
    /// No node is running, and the passphrase is not known.
    case locked(KithError)
    /// No node is running, and the directory cannot be opened.
    case failed(KithError)
    /// A node does not answer, or another process has the directory open.
    case silent(KithError)
  }

  var directory: String
  /// The port for a node if none is running.
  var port: UInt16
  var nowMilliseconds: UInt64
  var device: Device
  /// The directory is then that of the local stores.
  var isSignedOut = false
  /// Why it is not known who is signed in.
  var accountsError: KithError?
  /// The problem that writes made while nobody was signed in are not in the account yet; nil: they are.
  var pendingAdoption: NodeStatus.Problem?
  /// The other accounts here whose devices lack a file.
  var incompleteAccounts: [(account: String, file: String)] = []

  var report: NodeStatus? {
    switch device {
    case .running(let report), .opened(let report): report
    case .none, .locked, .failed, .silent: nil
    }
  }

  var isRunning: Bool { if case .running = device { true } else { false } }

  /// The port of a running node, or the one to use.
  var effectivePort: UInt16 {
    guard isRunning, let address = report?.listening.first,
      let text = address.split(separator: ":").last, let port = UInt16(text)
    else { return port }
    return port
  }
}

extension DiagnosisTarget {
  /// Asks the directory's node, or opens the directory if none is running. `isGiven`: there is a
  /// passphrase, or a source for it; otherwise a person is asked.
  static func device(
    of directory: String, _ passphrase: @escaping PassphraseQuestion, isGiven: Bool
  ) async -> Device {
    let isAnswered = Mutex(isGiven)
    do throws(KithError) {
      return .running(try await LocalClient(directory: directory).status())
    } catch  where error.code != .notRunning {
      return .silent(error)
    } catch {}
    do throws(KithError) {
      var configuration = Node.Configuration(directory: directory)
      configuration.passphrase = { () throws(KithError) in
        let answer = try passphrase()
        isAnswered.withLock { $0 = true }
        return answer
      }
      configuration.logger.logLevel = .critical
      configuration.isForReading = true
      let node = try await Node.open(configuration)
      let report = node.status
      try node.close()
      return .opened(report)
    } catch {
      let isLocked = error.code == .passphrase && !isAnswered.withLock { $0 }
      return error.code == .missing ? .none : isLocked ? .locked(error) : .failed(error)
    }
  }
}
