import FoundationEssentials
import KithCore
import KithTerminal
import KithValues

/// The kinds of value, by their names in `--type`.
enum ValueType: String, CaseIterable, Sendable {
  case auto, bool, integer, double, string, date, data, json, plist
}

enum ValueText {
  /// Returns the value of a text. With `auto`:
  /// - `true` and `false` are bools.
  /// - A number is an integer or a double if ``text(_:)`` gives back the same text.
  /// - Valid JSON that begins with `{`, `[` or `"` is its value, if that is so of each number in it.
  /// - Any other text is a string: `3.10`, `1e3`, `007`, integers beyond 64 bits.
  static func parse(
    _ text: String, as type: ValueType = .auto
  ) throws(ValueTextError) -> PropertyListValue {
    let value: PropertyListValue? =
      switch type {
      case .auto: automatic(text)
      case .bool: bool(text)
      case .integer: Int64(text).map(PropertyListValue.integer)
      case .double: double(text)
      case .string: .string(text)
      case .date: ISO8601Text.date(text).map(PropertyListValue.date)
      case .data: data(text).map(PropertyListValue.data)
      case .json: try explained(text, .json) { try ValueJSON.value(text) }
      case .plist: try explained(text, .plist) { try PropertyListReader.value(Data(text.utf8)) }
      }
    guard let value else { throw ValueTextError(text: text, type: type) }
    return value
  }

  /// Returns a value for people: a string without quotes, a date in ISO 8601, data in base64,
  /// others as JSON.
  static func text(_ value: PropertyListValue) -> String {
    switch value {
    case .string(let string): string
    case .date(let date): ISO8601Text.text(date) ?? ValueJSON.text(value)
    case .data(let data): data.base64EncodedString()
    case .double(let double): double.description
    default: ValueJSON.text(value)
    }
  }

  /// Returns a value as one line that is harmless on a terminal. JSON has escaped its strings itself.
  static func shown(_ value: PropertyListValue, limit: Int = .max) -> String {
    if case .string(let string) = value { return Columns.printable(string, limit: limit) }
    return Columns.sentence(text(value), limit: limit)
  }

  private static func automatic(_ text: String) -> PropertyListValue {
    guard let first = text.utf8.first, "tf{[\"-0123456789".utf8.contains(first) else {
      return .string(text)
    }
    var reader = JSONReader(Array(text.utf8))
    guard let node = try? reader.read(), node.hasOnlyCanonicalNumbers,
      let value = try? ValueJSON.value(node)
    else { return .string(text) }
    switch node {
    case .array, .object, .string: return value
    // A string keeps the white space around a number or a bool.
    default: return ValueJSON.text(value) == text ? value : .string(text)
    }
  }

  /// Why a text that looks like JSON, and was read with `auto`, is a string; nil: it is none of these.
  static func reasonAgainstJSON(_ text: String, _ value: PropertyListValue) -> String? {
    guard case .string = value, let first = text.utf8.first, "{[".utf8.contains(first) else {
      return nil
    }
    do {
      _ = try ValueJSON.value(text)
      return "as JSON a number in it would be printed otherwise; --type json takes it as JSON."
    } catch {
      return "it is no JSON of a value: \(error)."
    }
  }

  private static func bool(_ text: String) -> PropertyListValue? {
    switch text.lowercased() {
    case "true", "yes", "on", "1": true
    case "false", "no", "off", "0": false
    default: nil
    }
  }

  private static func double(_ text: String) -> PropertyListValue? {
    // `Double` accepts hexadecimal.
    guard let double = Double(withinRange: text), !text.lowercased().contains("x"),
      double.isFinite || ["inf", "+inf", "-inf", "nan"].contains(text.lowercased())
    else { return nil }
    return .double(double)
  }

  private static func data(_ text: String) -> Data? {
    guard text.hasPrefix("0x") else { return Data(canonicalBase64: text) }
    let digits = text.utf8.dropFirst(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count - 2, digits.count.isMultiple(of: 2) else { return nil }
    let bytes = stride(from: 0, to: digits.count, by: 2)
      .map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    return Data(bytes)
  }

  private static func explained(
    _ text: String, _ type: ValueType, _ parse: () throws -> PropertyListValue
  ) throws(ValueTextError) -> PropertyListValue {
    do { return try parse() } catch {
      throw ValueTextError(text: text, type: type, detail: String(describing: error))
    }
  }
}

extension JSONNode {
  /// Whether each number is written as ``ValueJSON`` writes it.
  fileprivate var hasOnlyCanonicalNumbers: Bool {
    switch self {
    case .number(let text): (try? ValueJSON.value(self)).map(ValueJSON.text) == text
    case .array(let nodes): nodes.allSatisfy(\.hasOnlyCanonicalNumbers)
    case .object(let members): members.allSatisfy(\.value.hasOnlyCanonicalNumbers)
    case .null, .bool, .string: true
    }
  }
}

struct ValueTextError: Error, Equatable, CustomStringConvertible {
  let text: String
  let type: ValueType
  /// The position and the cause, if known.
  var detail: String?

  var description: String {
    let shown = text.count > 40 ? text.prefix(40) + "…" : text[...]
    let why = detail.map { " (\($0))" } ?? ""
    return "\"\(shown)\" is not \(type.expectation)\(why); for example: \(type.example)"
  }
}

extension ValueType {
  /// The expected form, with its article.
  var expectation: String {
    switch self {
    case .auto: "a value"
    case .bool: "a bool: true, false, yes, no, on, off, 1 or 0"
    case .integer: "an integer: a whole number from \(Int64.min) to \(Int64.max)"
    case .double: "a double: a decimal number, inf, -inf or nan"
    case .string: "a string"
    case .date: "a date: ISO 8601 whose decimals a double keeps, in UTC unless it has an offset"
    case .data: "data: base64, or hexadecimal digits in pairs after 0x"
    case .json: "JSON"
    case .plist: "an XML property list"
    }
  }

  /// An accepted text.
  var example: String {
    switch self {
    case .auto, .string: "hello"
    case .bool: "true"
    case .integer: "42"
    case .double: "0.5"
    case .date: "2026-11-21T10:00:00.123Z"
    case .data: "AAEC, or 0x000102"
    case .json: "{\"width\": 80}"
    case .plist: "<plist><array><integer>1</integer></array></plist>"
    }
  }
}
