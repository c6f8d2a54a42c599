package import FoundationEssentials
import Glibc

/// Writes data to standard output, messages to standard error.
package struct Console: Sendable {
  /// Errors are still printed.
  package var isQuiet: Bool
  private let tool: String

  package init(isQuiet: Bool = false, tool: String = "kith") {
    self.isQuiet = isQuiet
    self.tool = tool
  }

  /// Appends a line feed. A terminal gets nothing that it would obey, except colours; files and pipes
  /// get the text unchanged.
  package func data(_ text: String) throws(CommandFailure) {
    let shown = Terminal.hasOutput ? Columns.coloured(text) : text
    try rawData(Data((shown + "\n").utf8))
  }

  package func rawData(_ bytes: Data) throws(CommandFailure) {
    let code = Self.write(Array(bytes), to: STDOUT_FILENO)
    guard code != 0 else { return }
    let isClosed = code == EBADF || code == EINVAL
    let reason = isClosed ? "it is closed" : String(cString: strerror(code))
    throw CommandFailure(
      .failure, "standard output: \(reason); the output is incomplete")
  }

  /// Exits the process on failure, for code that cannot throw to the command.
  package func dataOrExit(_ text: String) {
    do throws(CommandFailure) {
      try data(text)
    } catch {
      warn(error.description)
      exit(error.status.rawValue)
    }
  }

  package func talk(_ text: String) {
    if !isQuiet { prompt(Columns.coloured(text) + "\n") }
  }

  /// Prints even with `--quiet`. Escapes the text, because an error may quote others.
  package func warn(_ text: String) {
    prompt("\(tool): \(Columns.readable(text, indent: ""))\n")
  }

  /// Writes to standard error, unchanged; failures are ignored.
  package func prompt(_ text: String) { _ = Self.write(Array(text.utf8), to: STDERR_FILENO) }

  /// Writes all bytes; returns 0 or the error. If the reader of standard output has closed (such as
  /// `head`), the process ends as by the signal. Without a reader of messages and logs it goes on: a
  /// node must not end because nobody reads its log.
  private static func write(_ bytes: [UInt8], to file: Int32) -> Int32 {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while let start = UnsafeRawBufferPointer(rebasing: rest).baseAddress, !rest.isEmpty {
        let count = Glibc.write(file, start, rest.count)
        if count >= 0 {
          rest = rest.dropFirst(count)
          continue
        }
        switch errno {
        case EINTR: continue
        case EAGAIN:
          var waiting = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
          _ = poll(&waiting, 1, -1)
        case EPIPE where file == STDOUT_FILENO: exit(128 + SIGPIPE)
        case let code: return code
        }
      }
      return 0
    }
  }
}

package enum Terminal {
  package static var hasOutput: Bool { isatty(STDOUT_FILENO) == 1 }
  package static var hasTalk: Bool { isatty(STDERR_FILENO) == 1 }
  package static var hasInput: Bool { isatty(STDIN_FILENO) == 1 }

  /// The columns of standard error's terminal; 80 if unknown.
  package static var columns: Int { columns(of: STDERR_FILENO) ?? 80 }

  /// Nil if the file is no terminal, or its width is unknown.
  package static func columns(of file: Int32) -> Int? {
    var size = winsize()
    guard ioctl(file, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Colour needs a terminal that is not dumb, without `NO_COLOR` (no-color.org).
  package static func allowsColour(environment: [String: String], isTerminal: Bool) -> Bool {
    isTerminal && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
  }
}

package enum StandardFiles {
  /// Opens closed standard files. Otherwise a database, lock or socket could get standard output's
  /// number, and printed text would go into it. Reading and writing still fail.
  package static func occupy() {
    for file in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(file, F_GETFD) == -1 && errno == EBADF {
      // The lowest free number is this one: the numbers below are in use.
      _ = open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}

/// A progress bar on standard error, if that is a terminal.
package struct ProgressBar: Sendable {
  private let title: String
  private let total: Int
  private let isShown: Bool
  private let console = Console()

  package init(_ title: String, total: Int, isQuiet: Bool) {
    self.title = title
    self.total = total
    isShown = Terminal.hasTalk && !isQuiet && total > 0
  }

  package func update(_ done: Int) {
    guard isShown else { return }
    console.prompt("\r\u{1B}[K" + Self.line(title, done, total, columns: Terminal.columns - 1))
  }

  package func finish() {
    if isShown { console.prompt("\r\u{1B}[K") }
  }

  package static func line(_ title: String, _ done: Int, _ total: Int, columns: Int) -> String {
    let counts = " \(done)/\(total)"
    let columnsLeft = columns - Columns.width(title) - counts.count - 1
    guard columnsLeft >= 8 else { return String((title + counts).prefix(max(0, columns))) }
    let width = min(columnsLeft, 40)
    let filled = total > 0 ? min(width, done * width / total) : width
    let bar =
      String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
    return "\(title) \(bar)\(counts)"
  }
}
