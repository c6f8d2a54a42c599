import Glibc

/// Asks a person for a secret on the process's terminal, without showing the typed text. The
/// process's input and output may be redirected.
package enum SecretPrompt {
  /// The result of a question.
  package enum Answer: Equatable {
    /// The typed bytes, without the line feed. Zero them after use.
    case typed([UInt8])
    /// The person gave up, with Ctrl-C or Ctrl-D.
    case givenUp
    /// There is no terminal.
    case nobody
  }

  private static let interrupt: UInt8 = 3
  private static let end: UInt8 = 4
  private static let eraseLine: UInt8 = 21

  /// Asks a question.
  ///
  /// - Parameters:
  ///   - prompt: The text before the answer.
  ///   - limit: The maximum number of bytes; more are ignored.
  /// - Returns: The result.
  package static func ask(_ prompt: String, limit: Int) -> Answer {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return .nobody }
    defer { close(terminal) }
    var settings = termios()
    guard tcgetattr(terminal, &settings) == 0 else { return .nobody }
    // Reads character by character: Ctrl-C arrives here, so no signal leaves the terminal without
    // echo.
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | ISIG)
    // Set before the prompt, so that nothing typed after it is discarded.
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
    // Reserved at once, because moving the array would leave a copy of the secret.
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

  /// Removes the last character, which may have several UTF-8 bytes.
  private static func eraseCharacter(_ typed: inout [UInt8]) {
    while let last = typed.popLast(), last & 0xC0 == 0x80 {}
  }

  private static func write(_ text: String, to terminal: Int32) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(terminal, bytes, bytes.count)
  }
}
