import KithCore

/// Reads JSON (RFC 8259) strictly (`Docs/Decisions/json-by-hand.md`). Work and memory are linear in
/// the text, and recursion ends at ``maximumDepth``.
package struct JSONReader {
  /// Enough for a value of 64 containers with every dictionary tagged, inside the object of an
  /// export.
  static let maximumDepth = 256

  private let bytes: [UInt8]
  private var position = 0
  private let isFile: Bool

  /// `bytes` may begin with a byte-order mark. `isFile` accepts `//` and `/* */` comments and a
  /// trailing comma, as in editors' settings files, and leaves it to the caller to refuse keys that
  /// occur twice.
  package init(_ bytes: [UInt8], isFile: Bool = false) {
    self.bytes = bytes
    self.isFile = isFile
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  package mutating func read() throws(JSONSyntaxError) -> JSONNode {
    try skipSpace()
    let node = try node(depth: 0)
    try skipSpace()
    guard position == bytes.count else { throw error("nothing may follow the value") }
    return node
  }

  private mutating func node(depth: Int) throws(JSONSyntaxError) -> JSONNode {
    switch peek {
    case UInt8(ascii: "{"): return .object(try object(depth: depth + 1))
    case UInt8(ascii: "["): return .array(try array(depth: depth + 1))
    case UInt8(ascii: "\""): return .string(try string())
    case _ where isDigit || peek == UInt8(ascii: "-"): return .number(try number())
    case nil: throw error("the text ends where a value should be")
    default:
      if consume("true") { return .bool(true) }
      if consume("false") { return .bool(false) }
      if consume("null") { return .null }
      throw error("expected a value: {, [, a string in double quotes, a number, true or false")
    }
  }

  private mutating func object(depth: Int) throws(JSONSyntaxError) -> [JSONMember] {
    try open(depth)
    var members: [JSONMember] = []
    // Compare keys by bytes: two keys of a store may be canonically equivalent.
    var keys: Set<Key> = []
    while try !close(UInt8(ascii: "}"), isFirst: members.isEmpty) {
      guard peek == UInt8(ascii: "\"") else { throw error("expected a key in double quotes") }
      let start = position
      let key = try string()
      guard isFile || keys.insert(Key(key)).inserted else {
        throw error("the key \"\(key)\" occurs twice in one object", at: start)
      }
      try skipSpace()
      guard consume(":") else { throw error("expected : after the key") }
      try skipSpace()
      members.append(JSONMember(key: key, value: try node(depth: depth)))
    }
    return members
  }

  private mutating func array(depth: Int) throws(JSONSyntaxError) -> [JSONNode] {
    try open(depth)
    var elements: [JSONNode] = []
    while try !close(UInt8(ascii: "]"), isFirst: elements.isEmpty) {
      elements.append(try node(depth: depth))
    }
    return elements
  }

  private mutating func open(_ depth: Int) throws(JSONSyntaxError) {
    guard depth <= Self.maximumDepth else {
      throw error("nested deeper than \(Self.maximumDepth) arrays and objects")
    }
    position += 1
  }

  /// Reads a separator; returns whether the container ends.
  private mutating func close(_ end: UInt8, isFirst: Bool) throws(JSONSyntaxError) -> Bool {
    try skipSpace()
    if peek == end {
      position += 1
      return true
    }
    if isFirst { return false }
    guard consume(",") else {
      throw error("expected , or \(Character(Unicode.Scalar(end)))")
    }
    try skipSpace()
    guard isFile, peek == end else { return false }
    position += 1
    return true
  }

  private mutating func number() throws(JSONSyntaxError) -> String {
    let start = position
    _ = consume("-")
    if consume("0") {
      if isDigit { throw error("a number may not begin with 0") }
    } else {
      try digits()
    }
    if consume(".") { try digits() }
    if consume("e") || consume("E") {
      if !consume("+") { _ = consume("-") }
      try digits()
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func digits() throws(JSONSyntaxError) {
    guard isDigit else { throw error("expected a digit") }
    while isDigit { position += 1 }
  }

  private mutating func skipSpace() throws(JSONSyntaxError) {
    while let byte = peek {
      switch byte {
      case 0x20, 0x09, 0x0A, 0x0D: position += 1
      case UInt8(ascii: "/") where isFile: try skipComment()
      default: return
      }
    }
  }

  private mutating func skipComment() throws(JSONSyntaxError) {
    let start = position
    if consume("//") {
      while let byte = peek, byte != 0x0A { position += 1 }
      return
    }
    guard consume("/*") else { throw error("expected a value") }
    while !consume("*/") {
      guard peek != nil else { throw error("the comment has no end", at: start) }
      position += 1
    }
  }
}

extension JSONReader {
  private mutating func string() throws(JSONSyntaxError) -> String {
    let start = position
    position += 1
    var text: [UInt8] = []
    while let byte = peek {
      position += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard let string = String(validating: text, as: UTF8.self) else {
          throw error("the string is not valid UTF-8", at: start)
        }
        return string
      case UInt8(ascii: "\\"): text.append(contentsOf: String(try escape()).utf8)
      case 0..<0x20:
        position -= 1
        throw error("a control character in a string must be written as \\u00…")
      default: text.append(byte)
      }
    }
    throw error("the string has no closing quote", at: start)
  }

  private mutating func escape() throws(JSONSyntaxError) -> Unicode.Scalar {
    let start = position - 1
    let letter = peek
    position += 1
    switch letter {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"):
      let first = try hexadecimal(from: start)
      if let scalar = Unicode.Scalar(first) { return scalar }
      // A character above U+FFFF is written as two halves.
      if first < 0xDC00, consume("\\u") {
        let second = try hexadecimal(from: start)
        if (0xDC00..<0xE000).contains(second),
          let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        {
          return scalar
        }
      }
      throw error("half of a surrogate pair is no character", at: start)
    default: throw error("unknown escape", at: start)
    }
  }

  private mutating func hexadecimal(from start: Int) throws(JSONSyntaxError) -> UInt32 {
    var result: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw error("\\u needs four hexadecimal digits", at: start)
      }
      result = result << 4 | UInt32(digit)
      position += 1
    }
    return result
  }

  private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

  private var isDigit: Bool {
    position < bytes.count && (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[position])
  }

  private mutating func consume(_ text: StaticString) -> Bool {
    let end = position + text.utf8CodeUnitCount
    guard end <= bytes.count else { return false }
    for index in position..<end where bytes[index] != text.utf8Start[index - position] {
      return false
    }
    position = end
    return true
  }

  private func error(_ reason: String, at position: Int? = nil) -> JSONSyntaxError {
    let before = bytes[..<min(position ?? self.position, bytes.count)]
    let line = before.count { $0 == 0x0A } + 1
    let column = before.count - (before.lastIndex(of: 0x0A) ?? -1)
    return JSONSyntaxError(description: "line \(line), column \(column): \(reason)")
  }
}

/// A JSON text as written, without rounding, dropping or reordering.
package indirect enum JSONNode: Equatable {
  case null
  case bool(Bool)
  /// The digits as text, so that `1`, `1.0` and 20 digits are preserved.
  case number(String)
  case string(String)
  case array([JSONNode])
  /// In the order of the text; no two keys are equal, except in a file (``JSONReader``).
  case object([JSONMember])
}

package struct JSONMember: Equatable {
  package let key: String
  package let value: JSONNode
}

package struct JSONSyntaxError: Error, CustomStringConvertible {
  /// Begins with line and column: from 1, in bytes of UTF-8.
  package let description: String
}
