import FoundationEssentials
import Glibc
import KithTerminal
import Logging

/// Writes the log to standard error: to the journal with priorities (sd-daemon(3)), because it notes
/// the time itself, elsewhere with times.
struct ServiceLog: LogHandler {
  /// Whether standard error is the journal's.
  let isJournal: Bool
  var logLevel = Logger.Level.notice
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.MetadataValue? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  /// A logger to standard error.
  static func logger(_ level: Logger.Level) -> Logger {
    let isJournal = isJournal(STDERR_FILENO, environment: ProcessInfo.processInfo.environment)
    var logger = Logger(label: "kith") { _ in ServiceLog(isJournal: isJournal) }
    logger.logLevel = level
    return logger
  }

  func log(event: LogEvent) {
    let details = metadata.merging(event.metadata ?? [:]) { _, new in new }
    let line = Self.line(
      event.level, "\(event.message)", details.mapValues(\.description),
      at: isJournal ? nil : Date())
    Console().prompt(line + "\n")
  }

  /// Without a time: as the journal wants it. Names come from other devices, so they are shown
  /// harmless: no value ends its field or its line.
  static func line(
    _ level: Logger.Level, _ message: String, _ details: [String: String], at time: Date?
  ) -> String {
    let details = details.sorted { $0.key < $1.key }.map { detail in
      " \(detail.key)=" + field(detail.value)
    }
    let start = time.map { "\($0.ISO8601Format()) \(level) kith: " } ?? "<\(priority(level))>"
    return start + message + details.joined()
  }

  /// A word, or a text in quotes, as logfmt has it: `"` and `\` follow a `\`.
  private static func field(_ value: String) -> String {
    let isWord =
      !value.isEmpty
      && !value.unicodeScalars.contains {
        $0.properties.isWhitespace || "\"\\=".unicodeScalars.contains($0)
      }
    if isWord { return Columns.sentence(value) }
    let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    return "\"\(Columns.sentence(escaped))\""
  }

  /// As in syslog(3).
  private static func priority(_ level: Logger.Level) -> Int {
    switch level {
    case .trace, .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    case .critical: 2
    }
  }

  /// Whether `JOURNAL_STREAM` names this file by device and inode (systemd.exec(5)): a child may
  /// have another standard error than its service.
  static func isJournal(_ file: Int32, environment: [String: String]) -> Bool {
    var status = stat()
    guard let stream = environment["JOURNAL_STREAM"], fstat(file, &status) == 0 else {
      return false
    }
    return stream == "\(status.st_dev):\(status.st_ino)"
  }
}
