import Foundation
package import KithCore
import KithTerminal

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
        ISO8601Text.text(date).map(quoted) ?? number(date.timeIntervalSinceReferenceDate))
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
    let name =
      switch double.bitPattern {
      case Double.infinity.bitPattern: "inf"
      case (-Double.infinity).bitPattern: "-inf"
      case Double.nan.bitPattern: "nan"
      default: "0x" + String(double.bitPattern, radix: 16)
      }
    return tagged(.double, quoted(name))
  }

  static func quoted(_ string: String) -> String {
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
        text += String(format: "\\u%04x", scalar.value)
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "\""
  }
}
