import CLinux
import Dispatch
import FoundationEssentials
import Glibc
import Kith
import KithTerminal

/// Reads a file, a pipe, or standard input for `-`; files of /proc, too, of which Foundation's
/// essentials read the first page only.
enum InputText {
  /// Bounds the bytes of an endless stream in memory.
  static let limit = 64 << 20
  /// Bytes of a line from standard input.
  static let lineLimit = 64 << 10

  static func data(of name: String) throws(CommandFailure) -> Data {
    if name == "-" { return try read(STDIN_FILENO, name: shown(name)) }
    guard !name.isEmpty else { throw CommandFailure(.usage, "the file's name is empty") }
    let file = open(name, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw failure(name, errno) }
    defer { close(file) }
    return try read(file, name: name)
  }

  /// Drops the final line feed, which shells add, and nothing else.
  static func text(of name: String) throws(CommandFailure) -> String {
    guard var text = String(validating: try data(of: name), as: UTF8.self) else {
      throw CommandFailure(.refused, "the input is not valid UTF-8; give data with --type data")
    }
    // As a scalar: a `Character` would take the carriage return before it along.
    if text.unicodeScalars.last == "\n" { text.unicodeScalars.removeLast() }
    return text
  }

  /// Returns the first line that is not blank, trimmed. Reads standard input only as far as needed.
  static func line(of name: String) throws(CommandFailure) -> String {
    if name == "-" {
      while let line = try lineOfStandardInput() {
        let trimmed = line.trimmed
        if !trimmed.isEmpty { return trimmed }
      }
    } else {
      let lines = try text(of: name).split(whereSeparator: \.isNewline)
      let trimmed = lines.map { $0.trimmed }
      if let line = trimmed.first(where: { !$0.isEmpty }) { return line }
    }
    throw CommandFailure(.refused, "\(shown(name)) is empty")
  }

  /// Returns the next line of standard input, even an empty one; nil at the end.
  static func answer() throws(CommandFailure) -> String? {
    try lineOfStandardInput()?.trimmed { $0 == "\n" || $0 == "\r" }
  }

  /// Returns a line with its line feed; nil at the end.
  private static func lineOfStandardInput() throws(CommandFailure) -> String? {
    var line: [UInt8] = []
    while line.count < lineLimit, line.last != UInt8(ascii: "\n"),
      let byte = try some(of: STDIN_FILENO, shown("-"), limit: 1).first
    {
      line.append(byte)
    }
    return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
  }

  /// Ends waiting for standard input.
  final class Stop: Sendable {
    fileprivate let descriptor = eventfd(0, Int32(EFD_CLOEXEC))

    deinit { close(descriptor) }

    func raise() { eventfd_write(descriptor, 1) }
  }

  /// Returns bytes of standard input as soon as there are some; none at the end, or once `stop` is
  /// raised.
  static func available(until stop: Stop) throws(CommandFailure) -> [UInt8] {
    guard isAvailable(until: stop) else { return [] }
    return try some(of: STDIN_FILENO, shown("-"))
  }

  /// Waits for bytes of standard input, which a terminal has once a line is whole, or for its end;
  /// false once `stop` is raised.
  fileprivate static func isAvailable(until stop: Stop) -> Bool {
    while true {
      var waiting = [STDIN_FILENO, stop.descriptor].map {
        pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
      }
      guard poll(&waiting, nfds_t(waiting.count), -1) > 0 else { continue }
      return waiting[1].revents == 0
    }
  }

  private static func read(_ file: Int32, name: String) throws(CommandFailure) -> Data {
    var data = Data()
    while data.count <= limit {
      let bytes = try some(of: file, name)
      if bytes.isEmpty { return data }
      data.append(contentsOf: bytes)
    }
    throw CommandFailure(.failure, "\(name): has more than \(Format.bytes(limit))")
  }

  /// Returns bytes as soon as there are some; none at the end.
  private static func some(
    of file: Int32, _ name: String, limit: Int = 1 << 16
  ) throws(CommandFailure) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: limit)
    while true {
      let count = Glibc.read(file, &buffer, limit)
      if count >= 0 { return Array(buffer[..<count]) }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        var waiting = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
        _ = poll(&waiting, 1, -1)
      case let code: throw failure(name, code)
      }
    }
  }

  private static func failure(_ name: String, _ code: Int32) -> CommandFailure {
    let reason =
      switch code {
      case ENOENT: "there is no such file"
      case EACCES: "permission denied"
      case EISDIR: "this is a directory; name a file"
      case EBADF, EINVAL: "it is closed; pipe something in"
      default: String(cString: strerror(code))
      }
    return CommandFailure(.failure, "\(name): \(reason)")
  }

  private static func shown(_ name: String) -> String { name == "-" ? "standard input" : name }
}

enum Confirmation {
  /// Throws if no person can be asked. `isSure`: nobody is to be. `purpose` follows `--yes`.
  static func demandPerson(
    unless isSure: Bool, _ purpose: String = ""
  ) throws(CommandFailure) {
    guard isSure || Terminal.hasInput else {
      throw CommandFailure(.refused, "standard input is no terminal; pass --yes\(purpose)")
    }
  }

  /// Throws unless the person agrees.
  static func demand(
    _ question: String, unless isSure: Bool, _ console: Console
  ) throws(CommandFailure) {
    try demandPerson(unless: isSure)
    guard isSure || isGiven(question, console) else {
      throw CommandFailure(.refused, "nothing was done")
    }
  }

  /// Every answer but yes is no.
  static func isGiven(
    _ question: String, _ console: Console, until stop: InputText.Stop? = nil
  ) -> Bool {
    let answer = answer(to: question + " [y/N] ", console, until: stop)?.lowercased()
    return answer == "y" || answer == "yes"
  }

  /// As ``isGiven(_:_:until:)``, on a thread that may wait. Once the task is cancelled, it is no.
  static func isGivenUnlessCancelled(_ question: String, _ console: Console) async -> Bool {
    let stop = InputText.Stop()
    return await withTaskCancellationHandler {
      await DispatchQueue.global().run { isGiven(question, console, until: stop) }
    } onCancel: {
      stop.raise()
    }
  }

  /// Returns the trimmed line; nil at the end of input, or once `stop` is raised. Drops input typed
  /// before the question.
  static func answer(
    to question: String, _ console: Console, until stop: InputText.Stop? = nil
  ) -> String? {
    _ = tcflush(STDIN_FILENO, TCIFLUSH)
    console.prompt(Columns.coloured(question))
    if let stop, !InputText.isAvailable(until: stop) {
      console.prompt("\n")
      return nil
    }
    let line = (try? InputText.answer()) ?? nil
    return line?.trimmed
  }
}

extension StringProtocol {
  /// The text without white space and line feeds at both ends.
  var trimmed: String { trimmed { $0.properties.isWhitespace } }

  /// The text without the scalars of a kind at both ends.
  func trimmed(_ isOuter: (Unicode.Scalar) -> Bool) -> String {
    let start = unicodeScalars.firstIndex { !isOuter($0) } ?? endIndex
    let end = unicodeScalars.lastIndex { !isOuter($0) }.map { unicodeScalars.index(after: $0) }
    return String(self[start..<(end ?? start)])
  }
}
