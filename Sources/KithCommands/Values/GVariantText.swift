import Foundation
import KithCore

/// Writes values in GVariant's text format, so that ``GVariantReader`` reads the same, except dates:
/// they become strings. A list of several types becomes a tuple.
enum GVariantText {
  private static let integers: [String: ClosedRange<Int64>] = [
    "byte": 0...255, "int16": -0x8000...0x7FFF, "uint16": 0...0xFFFF,
    "int32": plain, "handle": plain, "uint32": 0...0xFFFF_FFFF,
    "int64": Int64.min...Int64.max, "uint64": 0...Int64.max,
  ]
  /// An integer without a type is an `int32`.
  private static let plain = Int64(Int32.min)...Int64(Int32.max)

  /// Returns the original text if it still gives the value. Of a changed integer, the type stays.
  static func text(_ value: PropertyListValue, like original: String?) -> String {
    // The text may come from another device: it must not have several lines.
    guard let original, original.utf8.allSatisfy({ $0 >= 0x20 }) else { return text(value) }
    var reader = GVariantReader(original)
    if let old = try? reader.read(), old == value { return original }
    if case .integer(let integer) = value, let type = original.split(separator: " ").first,
      integers[String(type)]?.contains(integer) == true
    {
      return "\(type) \(integer)"
    }
    return text(value)
  }

  static func text(_ value: PropertyListValue) -> String {
    switch value {
    case .bool(let bool): return "\(bool)"
    case .integer(let integer): return plain.contains(integer) ? "\(integer)" : "int64 \(integer)"
    case .double(let double): return double.description
    case .string(let string): return quoted(string)
    case .date: return quoted(ValueText.text(value))
    case .data(let data):
      if data.isEmpty { return "@ay []" }
      let bytes = data.map { String(format: "0x%02x", $0) }
      return "[byte \(bytes.joined(separator: ", "))]"
    case .array(let values):
      if values.isEmpty { return "@as []" }
      let list = values.map { text($0) }.joined(separator: ", ")
      return Set(values.map(typeString)).count == 1 ? "[\(list)]" : "(\(list))"
    case .dictionary(let members):
      if members.isEmpty { return "@a{sv} {}" }
      let isUniform = Set(members.values.map(typeString)).count == 1
      let list = members.sorted { Key($0.key) < Key($1.key) }.map { key, value in
        quoted(key) + ": " + (isUniform ? text(value) : "<\(text(value))>")
      }
      return "{\(list.joined(separator: ", "))}"
    }
  }

  /// GVariant's type string; integers count as one type.
  private static func typeString(_ value: PropertyListValue) -> String {
    switch value {
    case .bool: return "b"
    case .integer: return "x"
    case .double: return "d"
    case .string, .date: return "s"
    case .data: return "ay"
    case .array(let values):
      let types = values.map(typeString)
      guard let first = types.first else { return "as" }
      return Set(types).count == 1 ? "a" + first : "(\(types.joined()))"
    case .dictionary(let members):
      let types = Set(members.values.map(typeString))
      return types.count == 1 ? "a{s\(types.joined())}" : "a{sv}"
    }
  }

  private static func quoted(_ string: String) -> String {
    let quote: Unicode.Scalar = string.unicodeScalars.contains("'") ? "\"" : "'"
    var text = String.UnicodeScalarView([quote])
    for scalar in string.unicodeScalars {
      switch scalar {
      case quote, "\\":
        text.append("\\")
        text.append(scalar)
      case "\n": text += "\\n".unicodeScalars
      case "\t": text += "\\t".unicodeScalars
      case _ where scalar.properties.generalCategory == .control:
        text += String(format: "\\u%04x", scalar.value).unicodeScalars
      default: text.append(scalar)
      }
    }
    text.append(quote)
    return String(text)
  }
}
