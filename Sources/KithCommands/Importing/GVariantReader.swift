import FoundationEssentials
import KithCore

/// Reads GVariant's text format (GLib, "GVariant Text Format").
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
/// | `nothing` | an empty array; refused if its type is unknown, or an empty array is also a value of it |
struct GVariantReader {
  /// Nested containers and variants.
  static let maximumDepth = 128

  /// A value and its type, with `*` for what is unknown.
  private struct Typed {
    var value: PropertyListValue
    var type: String
    /// See ``GVariantText``; nil: the type says it.
    var form: PropertyListValue?

    var wholeForm: PropertyListValue { form ?? .string(type.replacing("*", with: "s")) }
  }

  private let bytes: [UInt8]
  private var position = 0

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  /// Returns the value and the form that writes it with the same types (``GVariantText``).
  mutating func read() throws(ImportError) -> (value: PropertyListValue, form: PropertyListValue) {
    let typed = try value(nil, depth: 0)
    skipSpace()
    guard position == bytes.count else { throw error("nothing may follow the value") }
    return (typed.value, typed.wholeForm)
  }

  /// Whether `nothing` of this type is told from each value.
  static func canBeNothing(_ type: String) -> Bool { !"am({".contains(type.first ?? "a") }

  /// `expected` is the type, if the text gave it before.
  private mutating func value(_ expected: String?, depth: Int) throws(ImportError) -> Typed {
    guard depth <= Self.maximumDepth else { throw error("nested too deep") }
    skipSpace()
    if let expected, expected.first == "m", peek != UInt8(ascii: "@") {
      return try maybe(expected, depth: depth + 1)
    }
    switch peek {
    case nil: throw error("the text ends where a value should be")
    case UInt8(ascii: "@"):
      let start = position
      position += 1
      let type = word { !Self.space.contains($0) }
      guard GVariantType.isValid(type) else { throw error("`@\(type)` is no type", at: start) }
      return try value(type, depth: depth + 1)
    case UInt8(ascii: "'"), UInt8(ascii: "\""):
      let type = expected.flatMap { "og".contains($0) ? $0 : nil } ?? "s"
      return Typed(value: .string(try string()), type: type)
    case UInt8(ascii: "["): return try array(expected, depth: depth + 1)
    case UInt8(ascii: "("):
      let parts = try list(
        end: UInt8(ascii: ")"), GVariantType.members(expected ?? "") ?? [], depth: depth + 1)
      return Self.container("(\(parts.map(\.type).joined()))", parts)
    case UInt8(ascii: "{"): return try dictionary(expected, depth: depth + 1)
    case UInt8(ascii: "<"):
      position += 1
      let inner = try value(nil, depth: depth + 1)
      try expect(UInt8(ascii: ">"))
      let isDefault = inner.wholeForm == .string(GVariantText.defaultType(inner.value))
      return Typed(
        value: inner.value, type: "v", form: isDefault ? nil : .array(["v", inner.wholeForm]))
    case UInt8(ascii: "b")
    where bytes.dropFirst(position + 1).first.map(Self.quotes.contains) == true:
      position += 1
      return Typed(value: .data(Data(try quoted(isBytestring: true))), type: "^ay")
    default: return try wordValue(expected, depth: depth)
    }
  }

  private mutating func maybe(_ type: String, depth: Int) throws(ImportError) -> Typed {
    let start = position
    let some = String(type.dropFirst())
    if take(word: "nothing") {
      guard Self.canBeNothing(some) else {
        throw error(
          "`nothing` of the type \(type) has no counterpart among values", at: start, isText: true)
      }
      return Typed(value: .array([]), type: type)
    }
    _ = take(word: "just")
    let inner = try value(some, depth: depth)
    return Typed(
      value: inner.value, type: type, form: inner.form.map { .array([.string(type), $0]) })
  }

  /// Reads a value that begins with a letter, a digit or a sign.
  private mutating func wordValue(_ expected: String?, depth: Int) throws(ImportError) -> Typed {
    let start = position
    let text = word { Self.wordBytes.contains($0) }
    switch text {
    case "true": return Typed(value: true, type: "b")
    case "false": return Typed(value: false, type: "b")
    case "nothing": throw error("`nothing` has no type here", at: start, isText: true)
    case "just":
      let inner = try value(nil, depth: depth + 1)
      let type = "m" + inner.type
      return Typed(
        value: inner.value, type: type, form: inner.form.map { .array([.string(type), $0]) })
    case "": throw error("expected a value")
    default:
      if let type = GVariantType.named(text) { return try value(type, depth: depth + 1) }
      return try number(text, expected, at: start)
    }
  }

  private func number(
    _ text: String, _ expected: String?, at start: Int
  ) throws(ImportError) -> Typed {
    let unsigned = text.first == "-" || text.first == "+" ? text.dropFirst() : text[...]
    let sign = text.first == "-" ? "-" : ""
    let isDouble = expected == "d"
    // As in C: 0x starts a hexadecimal number, 0 an octal one.
    let (digits, radix): (Substring, Int) =
      if unsigned.hasPrefix("0x") || unsigned.hasPrefix("0X") {
        (unsigned.dropFirst(2), 16)
      } else if unsigned.count > 1, unsigned.first == "0" {
        (unsigned.dropFirst(), 8)
      } else {
        (unsigned, 10)
      }
    let isInteger =
      !digits.isEmpty
      && digits.utf8.allSatisfy { byte in
        Character(Unicode.Scalar(byte)).hexDigitValue.map { $0 < radix } ?? false
      }
    if isInteger, !(isDouble && radix == 10) {
      guard let integer = Int64(sign + digits, radix: radix) else {
        throw error(
          "the integer \(text) is not within \(Int64.min) to \(Int64.max)", at: start, isText: true)
      }
      if isDouble { return Typed(value: .double(Double(integer)), type: "d") }
      let letter = expected?.first ?? (GVariantType.int32.contains(integer) ? "i" : "x")
      if let (name, range) = GVariantType.integers[letter] {
        guard range.contains(integer) else {
          throw error(
            "a \(name) must be within \(range.lowerBound) to \(range.upperBound)", at: start)
        }
        return Typed(value: .integer(integer), type: String(letter))
      }
      return Typed(value: .integer(integer), type: "i")
    }
    let isSpecial = ["inf", "infinity", "nan"].contains(unsigned.lowercased())
    let beginsAsNumber = unsigned.first.map { $0 == "." || $0.isWholeNumber } ?? false
    let looksLikeDouble = beginsAsNumber && (isDouble || unsigned.contains { ".eE".contains($0) })
    guard radix != 16, isSpecial || looksLikeDouble, let double = Double(text),
      isSpecial || double.isFinite
    else {
      throw error("`\(text)` is no value", at: start)
    }
    return Typed(value: .double(double), type: "d")
  }

  private mutating func array(_ expected: String?, depth: Int) throws(ImportError) -> Typed {
    let known = expected == "^ay" ? "y" : expected.flatMap { GVariantType.element($0, of: "a") }
    var parts = try list(
      end: UInt8(ascii: "]"), known.map { [$0] } ?? [], isArray: true, depth: depth)
    guard let first = parts.first else {
      let type = "a" + (known ?? "*")
      return Typed(value: type == "ay" ? .data(Data()) : .array([]), type: type)
    }
    // One double makes all of them doubles.
    if parts.contains(where: { $0.type == "d" }) {
      parts = parts.map { part in
        guard case .integer(let integer) = part.value else { return part }
        return Typed(value: .double(Double(integer)), type: "d")
      }
    }
    let element =
      parts.first { $0.type.contains("^") }?.type ?? known
      ?? parts.first { !$0.type.contains("*") }?.type ?? first.type
    guard element == "y" else {
      return Self.container("a" + element, parts, element: element)
    }
    var data = Data()
    for part in parts {
      guard case .integer(let integer) = part.value, let byte = UInt8(exactly: integer) else {
        throw error("a byte must be within 0 to 255")
      }
      data.append(byte)
    }
    return Typed(value: .data(data), type: "ay")
  }

  /// `element`: the type of all parts.
  private static func container(
    _ type: String, _ parts: [Typed], element: String? = nil
  ) -> Typed {
    let isPlain = parts.allSatisfy { part in
      part.form == nil && [nil, part.type].contains(part.type.contains("*") ? nil : element)
    }
    return Typed(
      value: .array(parts.map(\.value)), type: type,
      form: isPlain ? nil : .array([.string(type)] + parts.map(\.wholeForm)))
  }

  /// `types` are the members' types; that of an array is its only element, and otherwise the first
  /// member's.
  private mutating func list(
    end: UInt8, _ types: [String], isArray: Bool = false, depth: Int
  ) throws(ImportError) -> [Typed] {
    position += 1
    var parts: [Typed] = []
    while true {
      skipSpace()
      if take(end) { return parts }
      if !parts.isEmpty {
        try expect(UInt8(ascii: ","))
        skipSpace()
        if end == UInt8(ascii: ")"), parts.count == 1, take(end) { return parts }  // (1,)
      }
      let expected: String?
      if isArray {
        expected = types.first ?? parts.first { !$0.type.contains("*") }?.type
      } else {
        expected = types.indices.contains(parts.count) ? types[parts.count] : nil
      }
      parts.append(try value(expected, depth: depth))
    }
  }

  private mutating func dictionary(_ expected: String?, depth: Int) throws(ImportError) -> Typed {
    position += 1
    var (keyType, valueType): (String?, String?)
    if let (key, value) = expected.flatMap(GVariantType.entry) {
      (keyType, valueType) = (key, value)
    } else if let pair = expected.flatMap(GVariantType.members), pair.count == 2 {
      (keyType, valueType) = (pair[0], pair[1])
    }
    var members: [String: PropertyListValue] = [:]
    var forms: [String: PropertyListValue] = [:]
    var isPlain = true
    while true {
      skipSpace()
      if take(UInt8(ascii: "}")) {
        let type = "a{\(keyType ?? "s")\(valueType ?? "v")}"
        return Typed(
          value: .dictionary(members), type: type,
          form: isPlain ? nil : .array([.string(type), .dictionary(forms)]))
      }
      if !members.isEmpty { try expect(UInt8(ascii: ",")) }
      let key = try value(keyType, depth: depth)
      skipSpace()
      if members.isEmpty, take(UInt8(ascii: ",")) {
        // {'key', value}: an entry without a dictionary.
        let value = try value(valueType, depth: depth)
        try expect(UInt8(ascii: "}"))
        return Self.container("{\(key.type)\(value.type)}", [key, value])
      }
      try expect(UInt8(ascii: ":"))
      let value = try value(valueType, depth: depth)
      let name = ValueText.text(key.value)
      guard members.updateValue(value.value, forKey: name) == nil else {
        throw error(
          "the key `\(name)` occurs twice in one dictionary, or an equivalent one does",
          isText: true)
      }
      forms[name] = value.wholeForm
      isPlain = isPlain && value.form == nil
      keyType = keyType ?? key.type
      if valueType?.contains("*") ?? true { valueType = value.type }
    }
  }
}

extension GVariantReader {
  private mutating func string() throws(ImportError) -> String {
    let start = position
    guard let string = String(validating: try quoted(isBytestring: false), as: UTF8.self) else {
      throw error("the string is not valid UTF-8", at: start)
    }
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
        text.append(octal())
      default: text.append(letter)
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
    guard let scalar = Unicode.Scalar(code) else { throw error("no such character", at: start) }
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
    while let byte = peek, Self.space.contains(byte) { position += 1 }
  }

  private mutating func word(_ belongs: (UInt8) -> Bool) -> String {
    let text = bytes[position...].prefix(while: belongs)
    position += text.count
    return String(decoding: text, as: UTF8.self)
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard peek == byte else { return false }
    position += 1
    return true
  }

  /// Takes a whole word.
  private mutating func take(word: String) -> Bool {
    let start = position
    if self.word({ Self.wordBytes.contains($0) }) == word { return true }
    position = start
    return false
  }

  private mutating func expect(_ byte: UInt8) throws(ImportError) {
    skipSpace()
    guard take(byte) else { throw error("expected \(Character(Unicode.Scalar(byte)))") }
  }

  /// `isText`: the text is GVariant's, but no value has the content.
  private func error(
    _ reason: String, at position: Int? = nil, isText: Bool = false
  ) -> ImportError {
    ImportError(
      "column \((position ?? self.position) + 1) of the value: \(reason)", isText: isText)
  }
}
