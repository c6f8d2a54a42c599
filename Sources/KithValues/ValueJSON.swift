import FoundationEssentials
package import KithCore
import KithTerminal

/// The JSON form of values: one form for each value, which restores every bit.
///
/// | value | JSON |
/// | --- | --- |
/// | bool, string, array, dictionary | the same; members in order of their keys' UTF-8 bytes |
/// | integer | `1` |
/// | double | the shortest exact digits, with a fraction or exponent: `1.0`, `1e+16` |
/// | double, infinite or not a number | `{"$double":"inf"}`, `"-inf"`, `"nan"` |
/// | double, any other NaN | its bits: `{"$double":"0x7ff8000000000001"}` |
/// | date | `{"$date":"2026-11-21T10:00:00.123Z"}`, with as many decimals as needed |
/// | date not exact in ISO 8601 | `{"$date":`*double*`}`: seconds since 2001-01-01T00:00:00Z; from 1 to 10¹⁴, or so far before, as bits |
/// | data | `{"$data":"`*base64*`"}` |
/// | dictionary whose only key is a tag | `{"$dictionary":{…}}` |
///
/// Strings escape only `"`, `\` and characters that a terminal would obey (``CharacterEffect``).
/// There is no white space.
///
/// JSON of other programs is read alike. A number without fraction and exponent is an integer;
/// beyond 64 bits it is refused, and so is `-0`. A number or date of which a double loses a digit is
/// refused, and a date as a number that Kith would not write so. `null` is refused.
package enum ValueJSON {
  package enum Tag: String {
    case date = "$date"
    case data = "$data"
    case double = "$double"
    case dictionary = "$dictionary"
  }

  /// - Throws: `JSONSyntaxError` or `NotAValue`.
  package static func value(_ text: String) throws -> PropertyListValue {
    var reader = JSONReader(Array(text.utf8))
    return try value(try reader.read())
  }

  package static func value(_ node: JSONNode) throws(NotAValue) -> PropertyListValue {
    switch node {
    case .null: throw NotAValue("null is no value")
    case .bool(let bool): return .bool(bool)
    case .number(let text): return try number(text)
    case .string(let string): return .string(string)
    case .array(let nodes):
      var values: [PropertyListValue] = []
      for (index, node) in nodes.enumerated() {
        do throws(NotAValue) { values.append(try value(node)) } catch {
          throw error.inside("[\(index)]")
        }
      }
      return .array(values)
    case .object(let members):
      if members.count == 1, let tag = Tag(rawValue: members[0].key) {
        return try tagged(tag, members[0].value)
      }
      return .dictionary(try dictionary(members))
    }
  }

  private static func dictionary(
    _ members: [JSONMember]
  ) throws(NotAValue) -> [String: PropertyListValue] {
    try .distinct(members.map { ($0.key, $0.value) }) { node throws(NotAValue) in try value(node) }
  }

  private static func number(_ text: String) throws(NotAValue) -> PropertyListValue {
    guard text != "-0" else {
      throw NotAValue("an integer has no negative zero; write 0, or -0.0 for a double")
    }
    if let integer = Int64(text) { return .integer(integer) }
    guard text.contains(where: { ".eE".contains($0) }) else {
      throw NotAValue(
        "the integer \(text.prefix(40)) does not fit in 64 bits; write it with .0 for a double, or "
          + "in quotes")
    }
    guard let double = Double(withinRange: text) else {
      throw NotAValue("the number \(text.prefix(40)) is beyond the range of a double")
    }
    guard double.keeps(text) else { throw .rounded(text, to: double) }
    return .double(double)
  }

  private static func tagged(
    _ tag: Tag, _ node: JSONNode
  ) throws(NotAValue) -> PropertyListValue {
    switch (tag, node) {
    case (.date, .string(let text)):
      guard let date = ISO8601Text.date(text) else { break }
      return .date(date)
    case (.date, .number), (.date, .object):
      guard case .double(let seconds) = try value(node) else { break }
      let date = Date(timeIntervalSinceReferenceDate: seconds)
      // MongoDB and others write milliseconds or seconds since 1970 as a number: only one that Kith
      // writes is read.
      if case .number = node, isAmbiguous(seconds) || ISO8601Text.text(date) != nil { break }
      return .date(date)
    case (.data, .string(let text)):
      guard let data = Data(canonicalBase64: text) else { break }
      return .data(data)
    case (.double, .string(let text)):
      guard let double = specialDouble(text) else { break }
      return .double(double)
    case (.dictionary, .object(let members)):
      return .dictionary(try dictionary(members))
    default: break
    }
    throw NotAValue("{\"\(tag.rawValue)\": …} is not followed by \(tag.expectation)")
  }

  private static func specialDouble(_ text: String) -> Double? {
    switch text {
    case "nan": return .nan
    case "inf": return .infinity
    case "-inf": return -.infinity
    default:
      // `UInt64` takes a sign.
      guard text.utf8.count == 18, text.hasPrefix("0x"), text.dropFirst(2).first?.isHexDigit == true
      else { return nil }
      return UInt64(text.dropFirst(2), radix: 16).map(Double.init(bitPattern:))
    }
  }
}

extension ValueJSON.Tag {
  fileprivate var expectation: String {
    switch self {
    case .date:
      "an ISO 8601 date whose decimals a double keeps, such as \"2026-11-21T10:00:00Z\""
    case .data: "base64 text such as \"AAEC\""
    case .double: "\"nan\", \"inf\", \"-inf\" or 16 hexadecimal digits after 0x"
    case .dictionary: "an object"
    }
  }
}

extension ValueJSON {
  /// Returns compact JSON, byte for byte the same everywhere, without a final line feed.
  package static func text(_ value: PropertyListValue) -> String {
    switch value {
    case .bool(let bool): bool ? "true" : "false"
    case .integer(let integer): String(integer)
    case .double(let double): number(double)
    case .string(let string): quoted(string)
    case .date(let date):
      tagged(
        .date,
        ISO8601Text.text(date).map(quoted) ?? seconds(date.timeIntervalSinceReferenceDate))
    case .data(let data): tagged(.data, quoted(data.base64EncodedString()))
    case .array(let values): "[" + values.map(text).joined(separator: ",") + "]"
    case .dictionary(let members):
      if members.count == 1, let key = members.keys.first, Tag(rawValue: key) != nil {
        tagged(.dictionary, object(members))
      } else {
        object(members)
      }
    }
  }

  /// As of a dictionary, whose keys are in order, and may be canonically equivalent.
  package static func text(_ members: [(key: Key, value: PropertyListValue)]) -> String {
    let texts = members.map { "\(quoted($0.key.text)):\(text($0.value))" }
    let object = "{" + texts.joined(separator: ",") + "}"
    guard members.count == 1, Tag(rawValue: members[0].key.text) != nil else { return object }
    return tagged(.dictionary, object)
  }

  private static func object(_ members: [String: PropertyListValue]) -> String {
    let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    let texts = sorted.map { member in "\(quoted(member.key)):\(text(member.value))" }
    return "{" + texts.joined(separator: ",") + "}"
  }

  /// Returns an object with the tag as its only key.
  private static func tagged(_ tag: Tag, _ content: String) -> String {
    "{\"\(tag.rawValue)\":\(content)}"
  }

  private static func number(_ double: Double) -> String {
    if double.isFinite { return double.description }
    switch double.bitPattern {
    case Double.infinity.bitPattern: return tagged(.double, quoted("inf"))
    case (-Double.infinity).bitPattern: return tagged(.double, quoted("-inf"))
    case Double.nan.bitPattern: return tagged(.double, quoted("nan"))
    default: return bits(double)
    }
  }

  /// The seconds of a date that has no ISO 8601 text.
  private static func seconds(_ seconds: Double) -> String {
    isAmbiguous(seconds) ? bits(seconds) : number(seconds)
  }

  /// Whether another program may mean milliseconds since 1970 by a number: up to the year 5138.
  private static func isAmbiguous(_ seconds: Double) -> Bool {
    (1..<1e14).contains(seconds.magnitude)
  }

  /// All 16 digits: the double is not near zero.
  private static func bits(_ double: Double) -> String {
    tagged(.double, quoted("0x" + String(double.bitPattern, radix: 16)))
  }

  package static func quoted(_ string: String) -> String {
    var text = "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\u{8}": text += "\\b"
      case "\u{C}": text += "\\f"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      case _ where CharacterEffect(scalar) == .obeyed:
        text += "\\u" + scalar.value.digits(4, radix: 16)
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "\""
  }
}
