import Foundation
import Glibc

/// Where a command's words go: data to standard output, talk to standard error.
struct Console: Sendable {
  /// Whether talk that is no error is left out.
  var isQuiet = false

  /// Writes data and a line end.
  func data(_ text: String) { Self.write(text + "\n", to: STDOUT_FILENO) }

  /// Writes data as it is.
  func rawData(_ bytes: Data) { Self.write(Array(bytes), to: STDOUT_FILENO) }

  /// Tells a person something that is no data.
  func talk(_ text: String) {
    if !isQuiet { Self.write(text + "\n", to: STDERR_FILENO) }
  }

  /// Tells a person what must be heard even with `--quiet`.
  func warn(_ text: String) { Self.write("kith: \(text)\n", to: STDERR_FILENO) }

  /// Writes to standard error as it is: prompts and progress.
  func prompt(_ text: String) { Self.write(text, to: STDERR_FILENO) }

  private static func write(_ text: String, to file: Int32) { write(Array(text.utf8), to: file) }

  /// Writes all bytes. A reader that went away, such as `head`, ends the process as the signal
  /// would that tells of it.
  private static func write(_ bytes: [UInt8], to file: Int32) {
    bytes.withUnsafeBytes { bytes in
      var rest = bytes[...]
      while let start = UnsafeRawBufferPointer(rebasing: rest).baseAddress, !rest.isEmpty {
        let count = Glibc.write(file, start, rest.count)
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if errno == EPIPE {
          exit(128 + SIGPIPE)
        } else if errno != EINTR && errno != EAGAIN {
          return
        }
      }
    }
  }
}

/// What the terminal is like.
enum Terminal {
  /// Whether a person sees standard output.
  static var hasOutput: Bool { isatty(STDOUT_FILENO) == 1 }
  /// Whether a person sees standard error.
  static var hasTalk: Bool { isatty(STDERR_FILENO) == 1 }
  /// Whether a person can answer.
  static var hasInput: Bool { isatty(STDIN_FILENO) == 1 }

  /// The columns of the terminal behind standard error; 80 where they cannot be known.
  static var columns: Int {
    var size = winsize()
    guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  /// Whether standard output may carry colour: it is a terminal, and neither `NO_COLOR`
  /// (no-color.org) nor a dumb terminal forbids it.
  static func allowsColour(environment: [String: String], isTerminal: Bool) -> Bool {
    isTerminal && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
  }
}
