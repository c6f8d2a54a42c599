import Foundation
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
/// | `nothing` | refused |
struct GVariantReader {
  /// Nested containers and variants.
  static let maximumDepth = 128

  private let bytes: [UInt8]
  private var position = 0

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  mutating func read() throws(ImportError) -> PropertyListValue {
    let value = try value(type: nil, depth: 0)
    skipSpace()
    guard position == bytes.count else { throw error("nothing may follow the value") }
    return value
  }

  /// Reads a value. `type` is GVariant's type string, if the text has one.
  private mutating func value(
    type: Substring?, depth: Int
  ) throws(ImportError) -> PropertyListValue {
    guard depth <= Self.maximumDepth else { throw error("nested too deep") }
    skipSpace()
    switch peek {
    case nil: throw error("the text ends where a value should be")
    case UInt8(ascii: "@"):
      position += 1
      let type = word { !Self.space.contains($0) }
      return try value(type: type[...], depth: depth + 1)
    case UInt8(ascii: "'"), UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "["): return try array(type: type, depth: depth + 1)
    case UInt8(ascii: "("):
      return .array(try list(end: UInt8(ascii: ")"), type: nil, depth: depth + 1))
    case UInt8(ascii: "{"): return try dictionary(depth: depth + 1)
    case UInt8(ascii: "<"):
      position += 1
      let inner = try value(type: nil, depth: depth + 1)
      try expect(UInt8(ascii: ">"))
      return inner
    case UInt8(ascii: "b")
    where bytes.dropFirst(position + 1).first.map(Self.quotes.contains) == true:
      position += 1
      return .data(Data(try quoted(isBytestring: true)))
    default: return try wordValue(type: type, depth: depth)
    }
  }

  /// Reads a value that begins with a letter, a digit or a sign.
  private mutating func wordValue(
    type: Substring?, depth: Int
  ) throws(ImportError) -> PropertyListValue {
    let start = position
    let text = word { Self.wordBytes.contains($0) }
    switch text {
    case "true": return true
    case "false": return false
    case "nothing": throw error("`nothing` is the absence of a value", at: start)
    case "just": return try value(type: nil, depth: depth + 1)
    case "boolean", "string", "objectpath", "signature":
      return try value(type: nil, depth: depth + 1)
    case "double": return try value(type: "d", depth: depth + 1)
    case "byte", "int16", "uint16", "int32", "uint32", "handle", "int64", "uint64":
      return try value(type: "x", depth: depth + 1)
    case "": throw error("expected a value")
    default: return try number(text, isDouble: type == "d", at: start)
    }
  }

  private func number(
    _ text: String, isDouble: Bool, at start: Int
  ) throws(ImportError) -> PropertyListValue {
    let unsigned = text.first == "-" || text.first == "+" ? text.dropFirst() : text[...]
    let sign = text.first == "-" ? "-" : ""
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
        throw error("the integer \(text) is not within \(Int64.min) to \(Int64.max)", at: start)
      }
      return isDouble ? .double(Double(integer)) : .integer(integer)
    }
    let isSpecial = ["inf", "infinity", "nan"].contains(unsigned.lowercased())
    let beginsAsNumber = unsigned.first.map { $0 == "." || $0.isWholeNumber } ?? false
    let looksLikeDouble = beginsAsNumber && (isDouble || unsigned.contains { ".eE".contains($0) })
    guard radix != 16, isSpecial || looksLikeDouble, let double = Double(text),
      isSpecial || double.isFinite
    else {
      throw error("`\(text)` is no value", at: start)
    }
    return .double(double)
  }

  private mutating func array(
    type: Substring?, depth: Int
  ) throws(ImportError) -> PropertyListValue {
    let isBytes = type == "ay" || beginsWithByte
    let element = type?.first == "a" ? type?.dropFirst() : nil
    let values = try list(end: UInt8(ascii: "]"), type: element, depth: depth)
    guard isBytes else { return .array(inheriting(values)) }
    var data = Data()
    for value in values {
      guard case .integer(let integer) = value, let byte = UInt8(exactly: integer) else {
        throw error("a byte must be within 0 to 255")
      }
      data.append(byte)
    }
    return .data(data)
  }

  /// GVariant's printer marks only an array's first element with the type: if any is a double, all
  /// are.
  private func inheriting(_ values: [PropertyListValue]) -> [PropertyListValue] {
    let hasDouble = values.contains { if case .double = $0 { true } else { false } }
    guard hasDouble else { return values }
    return values.map {
      if case .integer(let integer) = $0 { .double(Double(integer)) } else { $0 }
    }
  }

  private mutating func list(
    end: UInt8, type: Substring?, depth: Int
  ) throws(ImportError) -> [PropertyListValue] {
    position += 1
    var values: [PropertyListValue] = []
    while true {
      skipSpace()
      if take(end) { return values }
      if !values.isEmpty {
        try expect(UInt8(ascii: ","))
        skipSpace()
        if end == UInt8(ascii: ")"), values.count == 1, take(end) { return values }  // (1,)
      }
      values.append(try value(type: type, depth: depth))
    }
  }

  private mutating func dictionary(depth: Int) throws(ImportError) -> PropertyListValue {
    position += 1
    var members: [String: PropertyListValue] = [:]
    while true {
      skipSpace()
      if take(UInt8(ascii: "}")) { return .dictionary(members) }
      if !members.isEmpty { try expect(UInt8(ascii: ",")) }
      let key = try value(type: nil, depth: depth)
      skipSpace()
      if members.isEmpty, take(UInt8(ascii: ",")) {
        // {'key', value}: an entry without a dictionary.
        let value = try value(type: nil, depth: depth)
        try expect(UInt8(ascii: "}"))
        return .array([key, value])
      }
      try expect(UInt8(ascii: ":"))
      let value = try value(type: nil, depth: depth)
      guard members.updateValue(value, forKey: ValueText.text(key)) == nil else {
        throw error("the key `\(ValueText.text(key))` occurs twice in one dictionary")
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

  /// Whether an array starts here with `byte` before its first element.
  private var beginsWithByte: Bool {
    bytes.dropFirst(position + 1).drop { Self.space.contains($0) }.starts(with: Array("byte ".utf8))
  }

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

  private mutating func expect(_ byte: UInt8) throws(ImportError) {
    skipSpace()
    guard take(byte) else { throw error("expected \(Character(Unicode.Scalar(byte)))") }
  }

  private func error(_ reason: String, at position: Int? = nil) -> ImportError {
    ImportError("column \((position ?? self.position) + 1) of the value: \(reason)")
  }
}
