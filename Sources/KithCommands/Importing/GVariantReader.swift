import FoundationEssentials
import KithCore

/// Reads GVariant's text format (GLib, "GVariant Text Format"), and refuses what GLib refuses.
///
/// | GVariant | value |
/// | --- | --- |
/// | boolean, double | the same |
/// | integers of every width, byte, handle | integer; a uint64 beyond `Int64.max` is refused |
/// | string, object path, signature | string |
/// | bytestring `b'…'` (without its final zero byte), array of `byte` | data |
/// | array, tuple, lone dictionary entry | array |
/// | dictionary | dictionary; keys that are not strings by their text |
/// | variant `<…>`, `just …` | its content |
/// | `nothing` | an empty array; refused if an empty array is also a value of its type |
///
/// The reader makes a tree, because a later element may say the type of an earlier one; the tree's
/// values are ``GVariantNode``'s.
struct GVariantReader {
  /// Nested containers and variants.
  static let maximumDepth = 128

  private let bytes: [UInt8]
  private var position = 0
  /// Whether the text so far is as GLib prints it: its spaces, numbers, quotes and escapes.
  private(set) var isCanonical = true
  /// Whether the text has said that values are bytes, which GLib prints in hexadecimal.
  private var namesBytes = false

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  /// Returns the value and the form that writes it with the same types (``GVariantText``).
  mutating func read() throws(ImportError) -> (value: PropertyListValue, form: PropertyListValue) {
    let node = try node(depth: 0)
    skipSpace()
    guard position == bytes.count else { throw error("nothing may follow the value") }
    return try node.read()
  }

  private mutating func node(depth: Int) throws(ImportError) -> GVariantNode {
    guard depth <= Self.maximumDepth else { throw error("nested too deep") }
    skipSpace()
    let column = position + 1
    let content: GVariantNode.Content
    switch peek {
    case nil: throw error("the text ends where a value should be")
    case UInt8(ascii: "@"):
      position += 1
      let type = word { !Self.space.contains($0) && !",:]>".utf8.contains($0) }
      guard GVariantType.isValid(type), !type.contains("^") else {
        throw .gvariant("`@\(type)` is no type", column)
      }
      namesBytes = namesBytes || type.contains("y")
      content = .declared(type, try node(depth: depth + 1))
    case UInt8(ascii: "'"), UInt8(ascii: "\""): content = .string(try string())
    case UInt8(ascii: "["): content = .array(try list(end: UInt8(ascii: "]"), depth: depth + 1))
    case UInt8(ascii: "("): content = .tuple(try list(end: UInt8(ascii: ")"), depth: depth + 1))
    case UInt8(ascii: "{"): content = try dictionary(depth: depth + 1)
    case UInt8(ascii: "<"):
      position += 1
      content = .variant(try node(depth: depth + 1))
      try expect(UInt8(ascii: ">"))
    case UInt8(ascii: "b")
    where bytes.dropFirst(position + 1).first.map(Self.quotes.contains) == true:
      position += 1
      namesBytes = true
      content = .bytestring(Data(try quoted(isBytestring: true)))
    default: content = try wordContent(depth: depth)
    }
    return try GVariantNode(content, column: column)
  }

  /// Reads a value that begins with a letter, a digit or a sign.
  private mutating func wordContent(depth: Int) throws(ImportError) -> GVariantNode.Content {
    let start = position
    let text = word { Self.wordBytes.contains($0) }
    switch text {
    case "": throw error("expected a value")
    case "true": return .bool(true)
    case "false": return .bool(false)
    case "nothing": return .maybe(nil)
    case "just": return .maybe(try node(depth: depth + 1))
    default:
      if let type = GVariantType.named(text) {
        namesBytes = namesBytes || type == "y"
        return .declared(type, try node(depth: depth + 1))
      }
      let isNumber = text.first?.isLetter == false
      guard isNumber || text.hasPrefix("inf") || text.hasPrefix("nan") else {
        throw error("`\(text)` is no value", at: start)
      }
      isCanonical =
        isCanonical && Self.isCanonical(number: text) && (namesBytes || !text.hasPrefix("0x"))
      return .number(text)
    }
  }

  private mutating func list(end: UInt8, depth: Int) throws(ImportError) -> [GVariantNode] {
    position += 1
    let isTuple = end == UInt8(ascii: ")")
    var parts: [GVariantNode] = []
    while true {
      skipSpace()
      let isOnly = isTuple && parts.count == 1
      // A tuple of one has a comma: (1,).
      if !isOnly, consume(end) { return parts }
      if !parts.isEmpty {
        try separator(UInt8(ascii: ","), isBefore: isOnly ? end : nil)
        if isOnly, consume(end) { return parts }
      }
      parts.append(try node(depth: depth))
    }
  }

  private mutating func dictionary(depth: Int) throws(ImportError) -> GVariantNode.Content {
    position += 1
    var members: [(GVariantNode, GVariantNode)] = []
    while true {
      skipSpace()
      if consume(UInt8(ascii: "}")) { return .dictionary(members) }
      if !members.isEmpty { try separator(UInt8(ascii: ",")) }
      let key = try node(depth: depth)
      skipSpace()
      let isEntry = members.isEmpty && peek == UInt8(ascii: ",")
      try separator(UInt8(ascii: isEntry ? "," : ":"))
      let value = try node(depth: depth)
      members.append((key, value))
      if isEntry {
        // {'key', value}: an entry without a dictionary.
        try expect(UInt8(ascii: "}"))
        return .entry(key, value)
      }
    }
  }
}

extension GVariantReader {
  private mutating func string() throws(ImportError) -> String {
    let start = position
    guard let string = String(validating: try quoted(isBytestring: false), as: UTF8.self) else {
      throw error("the string is not valid UTF-8", at: start)
    }
    let isDoublyQuoted = bytes[start] == UInt8(ascii: "\"")
    if isDoublyQuoted != string.utf8.contains(UInt8(ascii: "'")) { isCanonical = false }
    return string
  }

  /// Bytestrings have octal escapes, strings have Unicode escapes.
  private mutating func quoted(isBytestring: Bool) throws(ImportError) -> [UInt8] {
    let start = position
    let quote = bytes[position]
    position += 1
    var text: [UInt8] = []
    while let byte = peek {
      position += 1
      if byte == quote { return text }
      guard byte == UInt8(ascii: "\\") else {
        text.append(byte)
        continue
      }
      guard let letter = peek else { break }
      position += 1
      switch letter {
      case UInt8(ascii: "a"): text.append(7)
      case UInt8(ascii: "b"): text.append(8)
      case UInt8(ascii: "f"): text.append(12)
      case UInt8(ascii: "n"): text.append(10)
      case UInt8(ascii: "r"): text.append(13)
      case UInt8(ascii: "t"): text.append(9)
      case UInt8(ascii: "v"): text.append(11)
      case UInt8(ascii: "u") where !isBytestring: text += try scalar(digits: 4)
      case UInt8(ascii: "U") where !isBytestring: text += try scalar(digits: 8)
      case UInt8(ascii: "0")...UInt8(ascii: "7") where isBytestring:
        position -= 1
        let byte = octal()
        // GLib would end the bytes there.
        guard byte > 0 else { throw error("a bytestring has no zero byte", at: start) }
        text.append(byte)
      default:
        if letter != quote, !#"\"'"#.utf8.contains(letter) { isCanonical = false }
        text.append(letter)
      }
    }
    throw error("the string has no closing quote", at: start)
  }

  private mutating func scalar(digits: Int) throws(ImportError) -> String.UTF8View {
    var code: UInt32 = 0
    let start = position - 2
    for _ in 0..<digits {
      guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw error("the escape needs \(digits) hexadecimal digits", at: start)
      }
      code = code << 4 | UInt32(digit)
      position += 1
    }
    guard code > 0, let scalar = Unicode.Scalar(code) else {
      throw error("no such character", at: start)
    }
    return String(scalar).utf8
  }

  /// Up to three digits.
  private mutating func octal() -> UInt8 {
    var code: UInt32 = 0
    for _ in 0..<3 {
      guard let byte = peek, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) else { break }
      code = code << 3 | UInt32(byte - UInt8(ascii: "0"))
      position += 1
    }
    return UInt8(truncatingIfNeeded: code)
  }

  private static let space: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]
  private static let quotes: [UInt8] = [UInt8(ascii: "'"), UInt8(ascii: "\"")]
  private static let wordBytes = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.".utf8)

  private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    let start = position
    while let byte = peek, Self.space.contains(byte) { position += 1 }
    guard position > start, isCanonical else { return }
    isCanonical =
      position - start == 1 && bytes[start] == 0x20
      && !(start > 0 && "([{<".utf8.contains(bytes[start - 1]))
      && !(peek.map(")]}>,:".utf8.contains) ?? true)
  }

  /// Takes a comma or colon, and the space after it. `isBefore`: this byte may follow without a space.
  private mutating func separator(
    _ byte: UInt8, isBefore end: UInt8? = nil
  ) throws(ImportError) {
    try expect(byte)
    if peek != 0x20, peek != end { isCanonical = false }
    skipSpace()
  }

  /// As GLib prints numbers: at most 17 digits without needless zeros, bytes in hexadecimal.
  private static func isCanonical(number text: String) -> Bool {
    var rest = text.utf8[...]
    func digits() -> Substring.UTF8View {
      rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
    if text.hasPrefix("0x") {
      return rest.count == 4 && rest.dropFirst(2).allSatisfy("0123456789abcdef".utf8.contains)
    }
    if text == "-0" { return false }
    if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
    if rest.elementsEqual("inf".utf8) || rest.elementsEqual("nan".utf8) { return true }
    let whole = digits()
    guard whole.count == 1 || !whole.isEmpty && whole.first != UInt8(ascii: "0") else {
      return false
    }
    rest = rest[whole.endIndex...]
    if rest.first == UInt8(ascii: ".") {
      rest.removeFirst()
      let fraction = digits()
      guard fraction.count == 1 || !fraction.isEmpty && fraction.last != UInt8(ascii: "0") else {
        return false
      }
      rest = rest[fraction.endIndex...]
    }
    if rest.first == UInt8(ascii: "e") {
      rest.removeFirst()
      guard let sign = rest.popFirst(), "+-".utf8.contains(sign) else { return false }
      let exponent = digits()
      guard (2...3).contains(exponent.count) else { return false }
      rest = rest[exponent.endIndex...]
    }
    return rest.isEmpty
  }

  private mutating func word(_ belongs: (UInt8) -> Bool) -> String {
    let text = bytes[position...].prefix(while: belongs)
    position += text.count
    return String(decoding: text, as: UTF8.self)
  }

  private mutating func consume(_ byte: UInt8) -> Bool {
    guard peek == byte else { return false }
    position += 1
    return true
  }

  private mutating func expect(_ byte: UInt8) throws(ImportError) {
    skipSpace()
    guard consume(byte) else { throw error("expected \(Character(Unicode.Scalar(byte)))") }
  }

  private func error(_ reason: String, at position: Int? = nil) -> ImportError {
    .gvariant(reason, (position ?? self.position) + 1)
  }
}

extension ImportError {
  /// `isText`: the text is GVariant's, but no value has the content.
  static func gvariant(_ reason: String, _ column: Int, isText: Bool = false) -> ImportError {
    ImportError("column \(column) of the value: \(reason)", isText: isText)
  }
}
