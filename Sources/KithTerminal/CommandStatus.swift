/// The exit statuses of `kith`, which scripts may rely on (README.md, the table "exit status").
package enum CommandStatus: Int32, CaseIterable, Sendable {
  case success = 0
  /// A failure without its own status: a disk, a file, a bench over its budget.
  case failure = 1
  /// The key, or the whole store, is missing.
  case notFound = 2
  /// Kith refused the request: the quota, a key, a value, a declined invitation.
  case refused = 3
  /// The directory holds no device, holds one already, or belongs to another node.
  case directory = 4
  /// A node or peer was not reached, or not in time.
  case unreachable = 5
  /// A passphrase is needed, wrong, or cannot be read.
  case passphrase = 6
  /// `kith doctor` found a problem.
  case unhealthy = 7
  /// The command line is not valid, as ArgumentParser reports it.
  case usage = 64

  /// The meaning of the status in a few words, for help and documents.
  package var meaning: String {
    switch self {
    case .success: "done"
    case .failure: "failed: a file, a disk, a budget missed in bench"
    case .notFound: "the key, or the store, is missing"
    case .refused: "refused: quota, key, value, code, token, or a person said no"
    case .directory: "the directory is not set up, is set up already, or is in use"
    case .unreachable: "a node or peer cannot be reached, or not in time"
    case .passphrase: "a passphrase is needed, wrong, or cannot be read"
    case .unhealthy: "doctor found a problem"
    case .usage: "the command line cannot be understood"
    }
  }

  /// All statuses as lines of help.
  package static var help: String {
    allCases.map { status in
      let number = String(status.rawValue)
      let gap = String(repeating: " ", count: 4 - number.count)
      return "  \(number)\(gap)\(status.meaning)"
    }
    .joined(separator: "\n")
  }
}
