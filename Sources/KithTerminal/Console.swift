package import Foundation
import Glibc

/// Where a command's words go: data to standard output, talk to standard error.
package struct Console: Sendable {
  /// Whether talk that is no error is left out.
  package var isQuiet: Bool
  /// The tool's name, which stands before what must be heard.
  private let tool: String

  package init(isQuiet: Bool = false, tool: String = "kith") {
    self.isQuiet = isQuiet
    self.tool = tool
  }

  /// Writes data and a line end.
  package func data(_ text: String) throws(CommandFailure) { try Self.write(text + "\n") }

  /// Writes data as it is.
  package func rawData(_ bytes: Data) throws(CommandFailure) { try Self.write(Array(bytes)) }

  /// Writes data and a line end where nothing can be thrown to the command: ends the process where
  /// that fails.
  package func dataOrExit(_ text: String) {
    do throws(CommandFailure) {
      try data(text)
    } catch {
      warn(error.description)
      exit(error.status.rawValue)
    }
  }

  /// Tells a person something that is no data.
  package func talk(_ text: String) {
    if !isQuiet { prompt(text + "\n") }
  }

  /// Tells a person what must be heard even with `--quiet`. Errors quote what others named.
  package func warn(_ text: String) {
    prompt("\(tool): \(Columns.readable(text, indent: ""))\n")
  }

  /// Writes to standard error as it is: prompts and progress. Where that fails there is nobody left
  /// to tell.
  package func prompt(_ text: String) { _ = Self.write(Array(text.utf8), to: STDERR_FILENO) }

  private static func write(_ text: String) throws(CommandFailure) { try write(Array(text.utf8)) }

  private static func write(_ bytes: [UInt8]) throws(CommandFailure) {
    let code = write(bytes, to: STDOUT_FILENO)
    guard code != 0 else { return }
    let isClosed = code == EBADF || code == EINVAL
    let reason = isClosed ? "it is closed" : String(cString: strerror(code))
    throw CommandFailure(
      .failure, "standard output: \(reason); what was to be printed is not whole")
  }

  /// Writes all bytes; returns 0 or why it failed. A reader that went away, such as `head`, ends the
  /// process as the signal would that tells of it.
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
        case EPIPE: exit(128 + SIGPIPE)
        case let code: return code
        }
      }
      return 0
    }
  }
}

/// What the terminal is like.
package enum Terminal {
  /// Whether a person sees standard output.
  package static var hasOutput: Bool { isatty(STDOUT_FILENO) == 1 }
  /// Whether a person sees standard error.
  package static var hasTalk: Bool { isatty(STDERR_FILENO) == 1 }
  /// Whether a person can answer.
  package static var hasInput: Bool { isatty(STDIN_FILENO) == 1 }

  /// The columns of the terminal behind standard error; 80 where they cannot be known.
  package static var columns: Int {
    var size = winsize()
    guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  /// Whether standard output may carry colour: it is a terminal, and neither `NO_COLOR`
  /// (no-color.org) nor a dumb terminal forbids it.
  package static func allowsColour(environment: [String: String], isTerminal: Bool) -> Bool {
    isTerminal && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
  }
}
