import Kith
import Synchronization

/// Reads the small XML documents of WebDAV and S3.
///
/// It takes elements and text, and refuses document types, and so all entities but XML's own five.
/// Names lose their prefix: servers choose them freely, and no two elements that we read differ only
/// in it. Attributes are skipped. Each document ends with its root, so one that breaks off fails.
struct XMLScanner {
  enum Event: Equatable {
    case start(String)
    case text(String)
    case end(String)
  }

  /// The document is not well-formed, or is beyond a limit.
  struct Malformed: Error, Equatable {
    var offset: Int
    /// Whether it holds more than the reader asked for.
    var isTooMuch = false
  }

  private let bytes: [UInt8]
  private var position = 0
  private var open: [String] = []
  private var isRootDone = false
  /// The end of an element that was written `<name/>`.
  private var pendingEnd: String?

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  /// The next event; nil after the root has ended and the document with it.
  mutating func next() throws(Malformed) -> Event? {
    if let name = pendingEnd {
      pendingEnd = nil
      return close(name)
    }
    while position < bytes.count {
      if skip("<!--") {
        try find("-->")
      } else if skip("<?") {
        try find("?>")
      } else if isAt("<![CDATA["), !open.isEmpty {
        let start = position + "<![CDATA[".utf8.count
        try find("]]>")
        return .text(try string(start..<position - 3))
      } else if isAt("<!") {
        throw malformed
      } else if skip("</") {
        let name = try self.name()
        skipSpace()
        guard skip(">"), open.last == name else { throw malformed }
        return close(name)
      } else if skip("<") {
        return try start()
      } else if let text = try text() {
        return .text(text)
      }
    }
    guard isRootDone else { throw malformed }
    return nil
  }

  private mutating func start() throws(Malformed) -> Event {
    let name = try self.name()
    guard !isRootDone, open.count < CarrierLimits.xmlDepth else { throw malformed }
    while true {
      skipSpace()
      if skip("/>") {
        pendingEnd = name
        break
      }
      if skip(">") { break }
      _ = try self.name()
      skipSpace()
      guard skip("=") else { throw malformed }
      skipSpace()
      guard isAt("\"") || isAt("'") else { throw malformed }
      let quote = bytes[position]
      position += 1
      while position < bytes.count, bytes[position] != quote {
        guard bytes[position] != UInt8(ascii: "<") else { throw malformed }
        position += 1
      }
      guard position < bytes.count else { throw malformed }
      position += 1
    }
    open.append(name)
    return .start(name)
  }

  private mutating func close(_ name: String) -> Event {
    open.removeLast()
    isRootDone = open.isEmpty
    return .end(name)
  }

  /// Nil if it is only white space, or outside the root.
  private mutating func text() throws(Malformed) -> String? {
    var decoded: [UInt8] = []
    while position < bytes.count, bytes[position] != UInt8(ascii: "<") {
      if bytes[position] == UInt8(ascii: "&") {
        decoded += String(try reference()).utf8
      } else {
        decoded.append(bytes[position])
        position += 1
      }
      guard decoded.count <= CarrierLimits.xmlTextBytes else { throw malformed }
    }
    if decoded.allSatisfy(Self.isSpace) { return nil }
    guard !open.isEmpty, let text = String(validating: decoded, as: UTF8.self) else {
      throw malformed
    }
    return text
  }

  private mutating func reference() throws(Malformed) -> Character {
    let longest = 10
    let end = min(position + longest, bytes.count)
    guard let semicolon = bytes[position..<end].firstIndex(of: UInt8(ascii: ";")) else {
      throw malformed
    }
    let name = try string(position + 1..<semicolon)
    let character: Character
    switch name {
    case "amp": character = "&"
    case "lt": character = "<"
    case "gt": character = ">"
    case "quot": character = "\""
    case "apos": character = "'"
    default:
      let isHex = name.hasPrefix("#x")
      // `UInt32` takes a sign.
      guard name.hasPrefix("#"), !name.contains("+"), !name.contains("-"),
        let number = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10), number > 0,
        let scalar = Unicode.Scalar(number)
      else { throw malformed }
      character = Character(scalar)
    }
    position = semicolon + 1
    return character
  }

  /// A name without its prefix.
  private mutating func name() throws(Malformed) -> String {
    let start = position
    while position < bytes.count, !Self.isSpace(bytes[position]),
      !"<>/=\"'&;".utf8.contains(bytes[position])
    {
      position += 1
    }
    guard (1...CarrierLimits.xmlNameBytes).contains(position - start) else { throw malformed }
    let name = try string(start..<position)
    return name.lastIndex(of: ":").map { String(name[name.index(after: $0)...]) } ?? name
  }

  private func string(_ range: Range<Int>) throws(Malformed) -> String {
    guard range.count <= CarrierLimits.xmlTextBytes,
      let text = String(validating: bytes[range], as: UTF8.self)
    else { throw malformed }
    return text
  }

  private var malformed: Malformed { Malformed(offset: position) }

  private func isAt(_ text: StaticString) -> Bool {
    text.withUTF8Buffer { bytes[position...].starts(with: $0) }
  }

  private mutating func skip(_ text: StaticString) -> Bool {
    guard isAt(text) else { return false }
    position += text.utf8CodeUnitCount
    return true
  }

  private mutating func skipSpace() {
    while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
  }

  /// Moves behind the next occurrence.
  private mutating func find(_ text: StaticString) throws(Malformed) {
    while position < bytes.count {
      if skip(text) { return }
      position += 1
    }
    throw malformed
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }
}

extension XMLScanner {
  /// Large documents of all carriers are read one after the other, so that together they keep one
  /// core busy.
  private static let lock = Mutex(())

  /// Reads a large document. Blocks while another one is read.
  static func serially<Value: Sendable>(
    _ body: @Sendable () throws(CarrierFailure) -> Value
  ) throws(CarrierFailure) -> Value {
    try lock.withLock { _ throws(CarrierFailure) in try body() }
  }

  /// Calls a function when an element ends, with the names from the root to the element, and the text
  /// right inside it, not trimmed.
  ///
  /// - Throws: If the document is malformed, or has more elements than `limit`.
  static func forEachElement(
    of bytes: [UInt8], limit: Int = CarrierLimits.answerBytes,
    _ visit: (_ path: [String], _ text: String) throws(Malformed) -> Void
  ) throws(Malformed) {
    var elements = 0
    var scanner = XMLScanner(bytes)
    var path: [String] = []
    var texts: [String] = []
    while let event = try scanner.next() {
      switch event {
      case .start(let name):
        elements += 1
        guard elements <= limit else {
          throw Malformed(offset: scanner.position, isTooMuch: true)
        }
        path.append(name)
        texts.append("")
      case .text(let text):
        guard texts[texts.count - 1].utf8.count <= CarrierLimits.xmlTextBytes else {
          throw scanner.malformed
        }
        texts[texts.count - 1] += text
      case .end:
        try visit(path, texts.removeLast())
        path.removeLast()
      }
    }
  }
}
