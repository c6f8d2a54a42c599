import Glibc

/// Asks on the process's terminal, even if input and output are redirected; without echo for a secret.
package enum SecretPrompt {
  package enum Answer: Equatable {
    /// Without the line feed. Zero them after use.
    case typed([UInt8])
    /// Ctrl-C or Ctrl-D.
    case givenUp
    /// There is no terminal.
    case nobody
  }

  private static let interrupt: UInt8 = 3
  private static let end: UInt8 = 4
  private static let eraseLine: UInt8 = 21

  /// Asks for a line that may be seen. Ignores bytes beyond `limit`. Ctrl-C ends the process.
  package static func askOpenly(_ prompt: String, limit: Int) -> Answer {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return .nobody }
    defer { close(terminal) }
    write(prompt, to: terminal)
    return line(of: terminal, limit: limit)
  }

  /// Ignores bytes beyond `limit`.
  package static func ask(_ prompt: String, limit: Int) -> Answer {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return .nobody }
    defer { close(terminal) }
    var settings = termios()
    guard tcgetattr(terminal, &settings) == 0 else { return .nobody }
    // Read character by character: Ctrl-C arrives here, so no signal leaves the terminal without
    // echo.
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | ISIG)
    // Before the prompt, so that nothing typed after it is discarded.
    guard tcsetattr(terminal, TCSAFLUSH, &silent) == 0 else { return .nobody }
    write(prompt, to: terminal)
    defer {
      tcsetattr(terminal, TCSAFLUSH, &settings)
      write("\n", to: terminal)
    }
    return line(of: terminal, limit: limit)
  }

  private static func line(of terminal: Int32, limit: Int) -> Answer {
    var typed: [UInt8] = []
    // Reserve at once: moving the array would leave a copy of the secret.
    typed.reserveCapacity(limit)
    var byte: UInt8 = 0
    func forget(_ answer: Answer) -> Answer {
      for index in typed.indices { typed[index] = 0 }
      return answer
    }
    while true {
      guard read(terminal, &byte, 1) == 1 else {
        if errno == EINTR { continue }
        return forget(.givenUp)
      }
      switch byte {
      case UInt8(ascii: "\n"), UInt8(ascii: "\r"): return .typed(typed)
      case interrupt, end: return forget(.givenUp)
      case 0x08, 0x7F: eraseCharacter(&typed)
      case eraseLine: typed.removeAll(keepingCapacity: true)
      default: if typed.count < limit { typed.append(byte) }
      }
    }
  }

  /// The last character may have several UTF-8 bytes.
  private static func eraseCharacter(_ typed: inout [UInt8]) {
    while let last = typed.popLast(), last & 0xC0 == 0x80 {}
  }

  private static func write(_ text: String, to terminal: Int32) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(terminal, bytes, bytes.count)
  }
}
