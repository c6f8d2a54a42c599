/// The end of a failed command: one line for people, a status for programs.
package struct CommandFailure: Error, Equatable, CustomStringConvertible {
  package let status: CommandStatus
  /// Without `kith:` before it. Nil if all was printed already.
  package let message: String?

  package init(_ status: CommandStatus, _ message: String?) {
    self.status = status
    self.message = message
  }

  package var description: String { message ?? "status \(status.rawValue)" }
}

/// Scripts may rely on these statuses (`Docs/CommandLine.md`, "Exit statuses").
package enum CommandStatus: Int32, CaseIterable, Sendable {
  case success = 0
  case failure = 1
  case notFound = 2
  case refused = 3
  case directory = 4
  case unreachable = 5
  case passphrase = 6
  case unhealthy = 7
  case unexpected = 8
  /// As ArgumentParser reports it.
  case usage = 64

  package var meaning: String {
    switch self {
    case .success: "done"
    case .failure: "failed: a file, a disk"
    case .notFound: "the key, or the store, is missing"
    case .refused: "refused: quota, key, value, code, token, or a person said no"
    case .directory: "the directory is not set up, is set up already, or is in use"
    case .unreachable: "a node or peer cannot be reached, or not in time"
    case .passphrase: "a passphrase is needed, wrong, or cannot be read"
    case .unhealthy: "doctor, or status --check, found a problem"
    case .unexpected: "a value is not as set --if-value or --if-missing expects"
    case .usage: "the command line cannot be understood"
    }
  }

  package static var help: String {
    allCases.map { status in
      let number = String(status.rawValue)
      let gap = String(repeating: " ", count: 4 - number.count)
      return "  \(number)\(gap)\(status.meaning)"
    }
    .joined(separator: "\n")
  }
}
