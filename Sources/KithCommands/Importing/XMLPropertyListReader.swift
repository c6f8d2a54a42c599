import FoundationEssentials
import KithCore
import KithTerminal
import KithValues

/// Reads an XML property list strictly. Unlike Foundation's reader it keeps keys that Unicode calls
/// equivalent and keys that occur twice, and replaces no damaged value. Work and memory are linear
/// in the text.
struct XMLPropertyListReader {
  private struct Tag {
    var name: String
    var isEmpty = false
  }

  private let bytes: [UInt8]
  private var position = 0

  /// `bytes` may begin with a byte-order mark.
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  mutating func read() throws(ImportError) -> PropertyListNode {
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw ImportError("the text is not valid UTF-8; convert it, for example with iconv")
    }
    try checkEncoding()
    try skipMarkup()
    let root = try startTag()
    var node: PropertyListNode
    if root.name == "plist" {
      guard !root.isEmpty else { throw error("the property list is empty") }
      try skipMarkup()
      node = try value(try startTag(), depth: 0)
      try skipMarkup()
      guard consume("</") else { throw error("a property list has one value") }
      try end("plist")
    } else {
      node = try value(root, depth: 0)
    }
    try skipMarkup()
    guard position == bytes.count else { throw error("nothing may follow the property list") }
    return node
  }

  /// ``ImportedFile`` has converted UTF-16 already.
  private func checkEncoding() throws(ImportError) {
    guard isAt("<?xml") else { return }
    let line = String(decoding: bytes[position...].prefix(200), as: UTF8.self).prefix { $0 != ">" }
    guard let match = line.firstMatch(of: #/encoding\s*=\s*["']([^"']*)["']/#) else { return }
    guard ["utf-8", "us-ascii", "utf-16"].contains(match.1.lowercased()) else {
      throw ImportError(
        "the encoding is \(match.1), and UTF-8 is needed; convert it, for example with: "
          + "plutil -convert xml1")
    }
  }

  private mutating func value(_ tag: Tag, depth: Int) throws(ImportError) -> PropertyListNode {
    guard depth <= PropertyListNode.maximumDepth else {
      throw error("nested deeper than \(PropertyListNode.maximumDepth)")
    }
    switch tag.name {
    case "dict": return try dictionary(tag, depth: depth)
    case "array":
      var nodes: [PropertyListNode] = []
      while let inner = try member(of: tag) { nodes.append(try value(inner, depth: depth + 1)) }
      return .array(nodes)
    case "true", "false":
      let content = try text(of: tag)
      guard content.text.trimmed.isEmpty else { throw error("<\(tag.name)> holds text") }
      return .value(.bool(tag.name == "true"))
    case "string", "integer", "real", "date", "data":
      let (text, problem) = try text(of: tag)
      return problem.map { .invalid($0) } ?? Self.scalar(tag.name, text)
    default: throw error("<\(tag.name.prefix(40))> is no element of a property list")
    }
  }

  private mutating func dictionary(
    _ tag: Tag, depth: Int
  ) throws(ImportError) -> PropertyListNode {
    var members: [(key: String, node: PropertyListNode)] = []
    while let inner = try member(of: tag) {
      guard inner.name == "key" else { throw error("expected <key> or </dict>") }
      let (key, problem) = try text(of: inner)
      if let problem { throw error("in a key: \(problem)") }
      guard let next = try member(of: tag) else {
        throw error("the key \"\(key.prefix(80))\" has no value")
      }
      members.append((key, try value(next, depth: depth + 1)))
    }
    return .dictionary(members)
  }

  private static func scalar(_ name: String, _ text: String) -> PropertyListNode {
    let trimmed = text.trimmed
    func node(_ value: PropertyListValue?, _ expectation: String) -> PropertyListNode {
      value.map { .value($0) } ?? .invalid("`\(trimmed.prefix(40))` is not \(expectation)")
    }
    switch name {
    case "string": return .value(.string(text))
    case "integer":
      return node(
        integer(trimmed).map(PropertyListValue.integer),
        "an integer from \(Int64.min) to \(Int64.max)")
    case "real":
      if let nearest = double(trimmed), !nearest.keeps(trimmed) {
        return .invalid(NotAValue.rounded(trimmed, to: nearest).reason)
      }
      return node(
        double(trimmed).map(PropertyListValue.double), "a number within the range of a double")
    case "date":
      return node(
        ISO8601Text.date(trimmed).map(PropertyListValue.date),
        "an ISO 8601 date whose decimals a double keeps")
    default:
      let digits = String(decoding: text.utf8.filter { !isSpace($0) }, as: UTF8.self)
      return node(Data(canonicalBase64: digits).map(PropertyListValue.data), "base64")
    }
  }

  private static func integer(_ text: String) -> Int64? {
    let isNegative = text.hasPrefix("-")
    let digits = text.dropFirst(isNegative || text.hasPrefix("+") ? 1 : 0)
    let isHexadecimal = digits.lowercased().hasPrefix("0x")
    // `Int64` takes a sign, also after 0x.
    let integer: Int64? = number(
      digits.dropFirst(isHexadecimal ? 2 : 0), isHexadecimal, isNegative)
    // An integer has no negative zero.
    return isNegative && integer == 0 ? nil : integer
  }

  /// Reads digits without a sign.
  private static func number<Number: FixedWidthInteger>(
    _ digits: Substring, _ isHexadecimal: Bool, _ isNegative: Bool = false
  ) -> Number? {
    guard digits.first?.isHexDigit == true else { return nil }
    return Number((isNegative ? "-" : "") + digits, radix: isHexadecimal ? 16 : 10)
  }

  /// `Double` accepts hexadecimal.
  private static func double(_ text: String) -> Double? {
    text.lowercased().contains("x") ? nil : Double(withinRange: text)
  }

  // MARK: Markup

  /// The next element inside another, or nil at the other's end.
  private mutating func member(of tag: Tag) throws(ImportError) -> Tag? {
    if tag.isEmpty { return nil }
    try skipMarkup()
    guard consume("</") else { return try startTag() }
    try end(tag.name)
    return nil
  }

  private mutating func startTag() throws(ImportError) -> Tag {
    guard consume("<") else {
      throw error(position == bytes.count ? "the file breaks off" : "expected an element")
    }
    var tag = Tag(name: name())
    guard !tag.name.isEmpty else { throw error("expected an element's name") }
    while true {
      skipSpace()
      if consume(">") { return tag }
      if consume("/>") {
        tag.isEmpty = true
        return tag
      }
      // An attribute: none changes a value.
      guard !name().isEmpty, consume("="), let quote = peek, quote == 0x22 || quote == 0x27 else {
        throw error("<\(tag.name.prefix(40))> is not closed")
      }
      position += 1
      while let byte = peek, byte != quote { position += 1 }
      guard peek != nil else { throw error("<\(tag.name.prefix(40))> is not closed") }
      position += 1
    }
  }

  /// After `</`.
  private mutating func end(_ expected: String) throws(ImportError) {
    let name = name()
    skipSpace()
    guard name == expected, consume(">") else { throw error("expected </\(expected.prefix(40))>") }
  }

  private mutating func name() -> String {
    let start = position
    while let byte = peek, !Self.isSpace(byte), !"<>/=\"'&".utf8.contains(byte) { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// Skips white space, comments, instructions and the document type.
  private mutating func skipMarkup() throws(ImportError) {
    while true {
      skipSpace()
      if consume("<!--") {
        try find("-->")
      } else if consume("<?") {
        try find("?>")
      } else if consume("<!DOCTYPE") {
        while let byte = peek, byte != UInt8(ascii: ">") {
          guard byte != UInt8(ascii: "[") else {
            throw error("a document type with declarations of its own is not read")
          }
          position += 1
        }
        guard consume(">") else { throw error("the document type has no end") }
      } else {
        return
      }
    }
  }

  /// The text up to the element's end, and why it is damaged.
  private mutating func text(of tag: Tag) throws(ImportError) -> (text: String, problem: String?) {
    var text: [UInt8] = []
    var problem: String?
    func note(_ found: String?) { problem = problem ?? found }
    while !tag.isEmpty {
      if consume("</") {
        try end(tag.name)
        break
      } else if consume("<!--") {
        try find("-->")
      } else if consume("<![CDATA[") {
        let start = position
        try find("]]>")
        note(Self.append(bytes[start..<position - 3], to: &text))
      } else if isAt("<") {
        throw error("<\(tag.name)> holds an element")
      } else if isAt("&") {
        let reference = try reference()
        if let scalar = Self.scalar(of: reference), Self.isCharacter(scalar) {
          text += String(scalar).utf8
        } else {
          note("`&\(reference);` is no character of XML")
        }
      } else if position < bytes.count {
        let start = position
        while let byte = peek, byte != UInt8(ascii: "<"), byte != UInt8(ascii: "&") {
          if byte == UInt8(ascii: "]"), isAt("]]>") {
            note("`]]>` stands outside CDATA; write ]]&gt;")
          }
          position += 1
        }
        note(Self.append(bytes[start..<position], to: &text))
      } else {
        throw error("the file breaks off in <\(tag.name)>")
      }
    }
    return (String(decoding: text, as: UTF8.self), problem)
  }

  /// Appends characters as they stand in the file. Returns why they are damaged; nil: they are not.
  private static func append(_ raw: ArraySlice<UInt8>, to text: inout [UInt8]) -> String? {
    var previous: UInt8?
    for byte in raw {
      // XML 1.0, 2.11: CR LF, and CR alone, are a line feed.
      if byte != 0x0A || previous != 0x0D { text.append(byte == 0x0D ? 0x0A : byte) }
      previous = byte
    }
    return String(decoding: raw, as: UTF8.self).unicodeScalars.first { !isCharacter($0) }
      .map { "U+\($0.value.digits(4, radix: 16)) is no character of XML" }
  }

  /// XML 1.0, production 2.
  private static func isCharacter(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0A, 0x0D, 0x20...0xFFFD, 0x10000...: true
    default: false
    }
  }

  /// The text between `&` and `;`.
  private mutating func reference() throws(ImportError) -> String {
    let end = bytes[position...].prefix(12).firstIndex(of: UInt8(ascii: ";"))
    guard let end else { throw error("& begins no reference; write &amp; for the character") }
    defer { position = end + 1 }
    return String(decoding: bytes[position + 1..<end], as: UTF8.self)
  }

  private static func scalar(of reference: String) -> Unicode.Scalar? {
    switch reference {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      let isHexadecimal = reference.hasPrefix("#x")
      guard reference.hasPrefix("#") else { return nil }
      let digits = reference.dropFirst(isHexadecimal ? 2 : 1)
      return (number(digits, isHexadecimal) as UInt32?).flatMap(Unicode.Scalar.init)
    }
  }

  // MARK: Bytes

  private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

  private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0A, 0x0D].contains(byte) }

  private func isAt(_ text: StaticString) -> Bool {
    text.withUTF8Buffer { bytes[position...].starts(with: $0) }
  }

  private mutating func consume(_ text: StaticString) -> Bool {
    guard isAt(text) else { return false }
    position += text.utf8CodeUnitCount
    return true
  }

  private mutating func skipSpace() {
    while let byte = peek, Self.isSpace(byte) { position += 1 }
  }

  /// Moves behind the next occurrence.
  private mutating func find(_ text: StaticString) throws(ImportError) {
    let start = position
    while position < bytes.count {
      if consume(text) { return }
      position += 1
    }
    position = start
    throw error("\(text) is missing")
  }

  private func error(_ reason: String) -> ImportError {
    let line = bytes[..<min(position, bytes.count)].count { $0 == 0x0A } + 1
    return ImportError("line \(line): \(reason)")
  }
}
