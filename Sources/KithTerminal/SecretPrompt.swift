import Glibc

/// Asks a person for what nobody else shall see: on the process's terminal, wherever its input and
/// output go, without showing what is typed.
package enum SecretPrompt {
  /// What became of a question.
  package enum Answer: Equatable {
    /// The bytes that were typed, without the line end. Zero them.
    case typed([UInt8])
    /// The person gave up, with Ctrl-C or Ctrl-D.
    case givenUp
    /// There is no terminal.
    case nobody
  }

  private static let interrupt: UInt8 = 3
  private static let end: UInt8 = 4
  private static let eraseLine: UInt8 = 21

  /// Asks.
  ///
  /// - Parameters:
  ///   - prompt: What is shown before the answer.
  ///   - limit: The most bytes; more are not taken.
  /// - Returns: What became of it.
  package static func ask(_ prompt: String, limit: Int) -> Answer {
    let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard terminal >= 0 else { return .nobody }
    defer { close(terminal) }
    var settings = termios()
    guard tcgetattr(terminal, &settings) == 0 else { return .nobody }
    // Characters one by one, so that Ctrl-C comes here and no signal leaves the terminal silent.
    var silent = settings
    silent.c_lflag &= ~tcflag_t(ECHO | ECHONL | ICANON | ISIG)
    // Before the prompt: what is typed once it is seen is not thrown away.
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
    // Never moved while it grows, which would leave a copy behind.
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

  /// Takes the last character away, whose UTF-8 may be several bytes.
  private static func eraseCharacter(_ typed: inout [UInt8]) {
    while let last = typed.popLast(), last & 0xC0 == 0x80 {}
  }

  private static func write(_ text: String, to terminal: Int32) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(terminal, bytes, bytes.count)
  }
}
