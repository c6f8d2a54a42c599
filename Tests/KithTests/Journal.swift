import Logging
import Synchronization

/// Keeps the lines that are logged, from warnings up.
struct Journal: LogHandler {
  final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }

    var logger: Logger { Logger(label: "test") { _ in Journal(lines: self) } }
  }

  let lines: Lines
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.warning
  subscript(metadataKey key: String) -> Logger.MetadataValue? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    lines.add("\(event.level): \(event.message) \(event.metadata ?? [:])")
  }
}
