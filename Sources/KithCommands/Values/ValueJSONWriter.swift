import Foundation
import KithCore
import KithTerminal

/// Writes the JSON of ``ValueJSON``, byte for byte the same everywhere.
struct ValueJSONWriter {
  private(set) var text = ""
  private let isIndented: Bool
  private var level = 0

  init(isIndented: Bool) { self.isIndented = isIndented }

  mutating func write(_ value: PropertyListValue) {
    switch value {
    case .bool(let bool): text += bool ? "true" : "false"
    case .integer(let integer): text += String(integer)
    case .double(let double): write(double)
    case .string(let string): write(string)
    case .date(let date):
      tagged(.date) { writer in
        if let text = ISO8601Text.text(date) {
          writer.write(text)
        } else {
          writer.write(date.timeIntervalSinceReferenceDate)
        }
      }
    case .data(let data): tagged(.data) { $0.write(data.base64EncodedString()) }
    case .array(let values):
      list("[", values, "]") { writer, value in writer.write(value) }
    case .dictionary(let members):
      if members.count == 1, let key = members.keys.first, ValueJSON.Tag(rawValue: key) != nil {
        tagged(.dictionary) { $0.write(members) }
      } else {
        write(members)
      }
    }
  }

  private mutating func write(_ members: [String: PropertyListValue]) {
    let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    list("{", sorted, "}") { writer, member in
      writer.write(member.key)
      writer.text += writer.isIndented ? ": " : ":"
      writer.write(member.value)
    }
  }

  /// Writes an object with the tag as its only key.
  private mutating func tagged(_ tag: ValueJSON.Tag, _ content: (inout Self) -> Void) {
    text += "{\"\(tag.rawValue)\":" + (isIndented ? " " : "")
    content(&self)
    text += "}"
  }

  private mutating func list<Element>(
    _ open: String, _ elements: [Element], _ close: String,
    _ write: (inout Self, Element) -> Void
  ) {
    text += open
    level += 1
    for (index, element) in elements.enumerated() {
      if index > 0 { text += "," }
      newLine()
      write(&self, element)
    }
    level -= 1
    if !elements.isEmpty { newLine() }
    text += close
  }

  private mutating func newLine() {
    guard isIndented else { return }
    text += "\n" + String(repeating: "  ", count: level)
  }

  private mutating func write(_ double: Double) {
    if double.isFinite {
      text += double.description
      return
    }
    let name =
      switch double.bitPattern {
      case Double.infinity.bitPattern: "inf"
      case (-Double.infinity).bitPattern: "-inf"
      case Double.nan.bitPattern: "nan"
      default: "0x" + String(double.bitPattern, radix: 16)
      }
    tagged(.double) { $0.write(name) }
  }

  private mutating func write(_ string: String) {
    text += "\""
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
        let digits = String(scalar.value, radix: 16)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }
}
