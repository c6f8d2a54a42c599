import FoundationEssentials
import KithCore
import KithTerminal

/// Writes values in GVariant's text format, so that ``GVariantReader`` reads the same, except dates:
/// they become strings.
///
/// A value alone does not say its GVariant type: 5 may be a `uint32`. ``GVariantReader`` returns the
/// form that says it: a type string, or an array of a type string and of the forms inside it if
/// there are variants whose content has not its usual type. The forms inside a dictionary are a
/// dictionary.
enum GVariantText {
  /// Returns the value in a form, or nil if the value does not fit it.
  static func text(_ value: PropertyListValue, as form: PropertyListValue) -> String? {
    text(value, form, isTyped: true, depth: 0)
  }

  /// Returns the value in its usual form: an integer is an `int32` if it fits, else an `int64`; a
  /// list of several types is a tuple, an empty one `@as []`, a date a string. Nil if GLib would not
  /// read the text: it is nested too deeply, has too long a type, a string with U+0000 or a subnormal
  /// double.
  static func text(_ value: PropertyListValue) -> String? {
    text(value, as: .string(defaultType(value)))
  }

  /// Values inside each other, and types before them, that GLib's parser follows
  /// (`G_VARIANT_MAX_RECURSION_DEPTH`). The last one is for a type before the innermost value.
  private static let maximumDepth = 128 - 2

  /// Whether a value of this kind nearly always has its usual type.
  static func isDefault(_ value: PropertyListValue) -> Bool {
    switch value {
    case .bool, .double, .string: true
    case .array(let values):
      !values.isEmpty && values.allSatisfy { if case .string = $0 { true } else { false } }
    case .integer, .date, .data, .dictionary: false
    }
  }

  /// Whether `nothing` of this type is told from each value.
  static func canBeNothing(_ type: String) -> Bool { !"am({".contains(type.first ?? "a") }

  static func defaultType(_ value: PropertyListValue) -> String {
    switch value {
    case .bool: return "b"
    case .integer(let integer): return GVariantType.int32.contains(integer) ? "i" : "x"
    case .double: return "d"
    case .string, .date: return "s"
    case .data: return "ay"
    case .array(let values):
      let types = values.map(defaultType)
      if types.isEmpty { return "as" }
      return joined(types).map { "a" + $0 } ?? "(\(types.joined()))"
    case .dictionary(let members):
      return "a{s\(joined(members.values.map(defaultType)) ?? "v")}"
    }
  }

  /// The one type of all, in which an `int32` may be an `int64`; nil if there is none.
  private static func joined(_ types: [String]) -> String? {
    let all = Set(types)
    if all.count == 1 { return types.first }
    let wide = Set(all.map { $0.replacing("i", with: "x") })
    return wide.count == 1 ? wide.first : nil
  }

  /// `isTyped`: the text says the type where another reader would take another one. As GLib prints
  /// it, only the first element of an array does.
  private static func text(
    _ value: PropertyListValue, _ form: PropertyListValue, isTyped: Bool, depth: Int
  ) -> String? {
    // A form comes from another device.
    guard depth <= maximumDepth, let (type, inner) = parts(form) else { return nil }
    func inside(
      _ value: PropertyListValue, _ form: PropertyListValue, _ isTyped: Bool, levels: Int = 1
    ) -> String? {
      text(value, form, isTyped: isTyped, depth: depth + levels)
    }
    func innerForm(_ index: Int, _ type: String) -> PropertyListValue {
      inner.indices.contains(index) ? inner[index] : .string(type)
    }
    switch (type.first, value) {
    case ("b", .bool(let bool)): return "\(bool)"
    // GLib takes the decimal digits of a subnormal number for an overflow.
    case ("d", .double(let double)) where !double.isSubnormal:
      return double.isNaN ? "nan" : double.description
    case ("d", .integer(let integer)):
      return Double(exactly: integer).map(\.description)
    case ("s", .string(let string)): return quoted(string)
    case ("s", .date): return quoted(ValueText.text(value))
    case ("o", .string(let string)) where isObjectPath(string):
      return quoted(string).map { (isTyped ? "objectpath " : "") + $0 }
    case ("g", .string(let string)) where GVariantType.split(string) != nil:
      return quoted(string).map { (isTyped ? "signature " : "") + $0 }
    case ("^", .data(let data)) where !data.contains(0): return bytestring(data)
    case ("v", _):
      let usual = PropertyListValue.string(defaultType(value))
      // Not the usual form twice: the time would double with each level.
      let content =
        inner.first.flatMap { inside(value, $0, true) } ?? inside(value, usual, true)
      return content.map { "<\($0)>" }
    case ("m", _):
      guard let some = GVariantType.element(type, of: "m") else { return nil }
      let prefix = isTyped ? "@\(plain(type)) " : ""
      if value == .array([]), canBeNothing(some) { return prefix + "nothing" }
      let just = some.hasPrefix("m") ? "just " : ""
      // The parser counts the type, and each `just` that may be written.
      return inside(value, innerForm(0, some), false, levels: isTyped ? 2 : 1)
        .map { prefix + just + $0 }
    case ("a", .dictionary(let members)):
      guard let (keyType, valueType) = GVariantType.entry(type) else { return nil }
      if members.isEmpty { return isTyped ? "@\(plain(type)) {}" : "{}" }
      let forms: [String: PropertyListValue] =
        if case .dictionary(let forms)? = inner.first { forms } else { [:] }
      var texts: [String] = []
      for (key, member) in members.sorted(by: { Key($0.key) < Key($1.key) }) {
        let isFirst = isTyped && texts.isEmpty
        guard let keyValue = self.key(key, keyType),
          let keyText = inside(keyValue, .string(keyType), isFirst),
          let text = inside(member, forms[key] ?? .string(valueType), isFirst)
        else { return nil }
        texts.append("\(keyText): \(text)")
      }
      return "{\(texts.joined(separator: ", "))}"
    case ("a", .data(let data)) where type == "ay":
      if data.isEmpty { return isTyped ? "@ay []" : "[]" }
      let bytes = data.map { "0x" + $0.digits(2, radix: 16) }
      return "[\(isTyped ? "byte " : "")\(bytes.joined(separator: ", "))]"
    case ("a", .array(let values)):
      guard let element = GVariantType.element(type, of: "a"), element != "y" else { return nil }
      if values.isEmpty { return isTyped ? "@\(plain(type)) []" : "[]" }
      var texts: [String] = []
      for (index, value) in values.enumerated() {
        guard let text = inside(value, innerForm(index, element), isTyped && index == 0) else {
          return nil
        }
        texts.append(text)
      }
      return "[\(texts.joined(separator: ", "))]"
    case ("(", .array(let values)), ("{", .array(let values)):
      guard let types = GVariantType.members(type), types.count == values.count else { return nil }
      var texts: [String] = []
      for (index, value) in values.enumerated() {
        guard let text = inside(value, innerForm(index, types[index]), isTyped) else { return nil }
        texts.append(text)
      }
      let list = texts.joined(separator: ", ")
      return type.hasPrefix("{") ? "{\(list)}" : texts.count == 1 ? "(\(list),)" : "(\(list))"
    case (let letter?, .integer(let integer)):
      guard let (name, range) = GVariantType.integers[letter], range.contains(integer) else {
        return nil
      }
      let digits = letter == "y" ? "0x" + integer.digits(2, radix: 16) : "\(integer)"
      return isTyped && letter != "i" ? "\(name) \(digits)" : digits
    default: return nil
    }
  }

  private static func parts(
    _ form: PropertyListValue
  ) -> (type: String, inner: ArraySlice<PropertyListValue>)? {
    let (type, inner): (String, ArraySlice<PropertyListValue>)
    switch form {
    case .string(let text): (type, inner) = (text, [])
    case .array(let forms):
      guard case .string(let text)? = forms.first else { return nil }
      (type, inner) = (text, ArraySlice(Array(forms.dropFirst())))
    default: return nil
    }
    return GVariantType.isValid(type) ? (type, inner) : nil
  }

  /// The type as GLib knows it.
  private static func plain(_ type: String) -> String { type.filter { $0 != "^" } }

  /// The value of a dictionary's key, which is text.
  private static func key(_ key: String, _ type: String) -> PropertyListValue? {
    switch type {
    case "s", "o", "g": .string(key)
    case "b": key == "true" ? true : key == "false" ? false : nil
    // A key that is written otherwise would become another one, such as +5.
    case "d": Double(key).flatMap { $0.description == key ? .double($0) : nil }
    default: Int64(key).flatMap { String($0) == key ? .integer($0) : nil }
    }
  }

  static func isObjectPath(_ text: String) -> Bool {
    guard text.hasPrefix("/"), text != "/" else { return text == "/" }
    return text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).allSatisfy {
      !$0.isEmpty
        && $0.utf8.allSatisfy { byte in
          byte < 0x80 && (Character(Unicode.Scalar(byte)).isLetter || byte == UInt8(ascii: "_"))
            || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
        }
    }
  }

  private static func bytestring(_ data: Data) -> String {
    var text = "b'"
    for byte in data {
      switch byte {
      case UInt8(ascii: "'"), UInt8(ascii: "\\"): text += "\\" + String(Unicode.Scalar(byte))
      case 0x20..<0x7F: text.unicodeScalars.append(Unicode.Scalar(byte))
      default: text += "\\" + byte.digits(3, radix: 8)
      }
    }
    return text + "'"
  }

  /// Escapes what a terminal would obey, as GLib does. Nil for a text with U+0000, which no GVariant
  /// string has.
  private static func quoted(_ string: String) -> String? {
    if string.utf8.contains(0) { return nil }
    let quote: Unicode.Scalar = string.unicodeScalars.contains("'") ? "\"" : "'"
    var text = String.UnicodeScalarView([quote])
    for scalar in string.unicodeScalars {
      switch scalar {
      case quote, "\\":
        text.append("\\")
        text.append(scalar)
      case "\n": text += "\\n".unicodeScalars
      case "\t": text += "\\t".unicodeScalars
      case _ where CharacterEffect(scalar) == .obeyed:
        text += "\\u\(scalar.value.digits(4, radix: 16))".unicodeScalars
      default: text.append(scalar)
      }
    }
    text.append(quote)
    return String(text)
  }
}

/// GVariant's type strings (GLib, "GVariant Type Strings"), and one of our own: `^ay` is a bytestring
/// `b'…'`.
enum GVariantType {
  /// Bytes of a type string, as D-Bus has it.
  static let limit = 255
  private static let depthLimit = 64

  /// The integers' names in values, and their ranges. Of a uint64, only what a value holds.
  static let integers: [Character: (name: String, range: ClosedRange<Int64>)] = [
    "y": ("byte", 0...0xFF), "n": ("int16", -0x8000...0x7FFF), "q": ("uint16", 0...0xFFFF),
    "i": ("int32", int32), "u": ("uint32", 0...0xFFFF_FFFF), "h": ("handle", int32),
    "x": ("int64", Int64.min...Int64.max), "t": ("uint64", 0...Int64.max),
  ]
  /// The range of an integer without a type.
  static let int32 = Int64(Int32.min)...Int64(Int32.max)

  /// The type that a word before a value names.
  static func named(_ word: String) -> String? {
    switch word {
    case "boolean": "b"
    case "double": "d"
    case "string": "s"
    case "objectpath": "o"
    case "signature": "g"
    default: integers.first { $0.value.name == word }.map { String($0.key) }
    }
  }

  /// Whether it is one complete type.
  static func isValid(_ type: some StringProtocol) -> Bool {
    guard type.utf8.count <= limit, let rest = rest(after: type[...], 0) else { return false }
    return rest.isEmpty
  }

  /// Splits types that follow each other; nil if one is malformed.
  static func split(_ types: some StringProtocol) -> [String]? {
    var parts: [String] = []
    var types = types[...]
    while !types.isEmpty {
      guard let rest = rest(after: types, 0) else { return nil }
      parts.append(String(types[..<rest.startIndex]))
      types = rest
    }
    return parts
  }

  /// The types between the parentheses or braces; nil if the type has none.
  static func members(_ type: String) -> [String]? {
    guard "({".contains(type.first ?? " "), type.count >= 2 else { return nil }
    return split(type.dropFirst().dropLast())
  }

  /// The types of a dictionary's keys and values; nil if the type is no dictionary.
  static func entry(_ type: String) -> (key: String, value: String)? {
    guard type.hasPrefix("a{"), let pair = members(String(type.dropFirst())), pair.count == 2
    else { return nil }
    return (pair[0], pair[1])
  }

  /// The type of an array's elements, or of what a maybe may hold; nil if the type is neither.
  static func element(_ type: String, of container: Character) -> String? {
    type.first == container && type.count > 1 ? String(type.dropFirst()) : nil
  }

  private static func rest<Text: StringProtocol>(
    after type: Text, _ depth: Int
  ) -> Text? where Text.SubSequence == Text {
    guard depth <= depthLimit, let first = type.first else { return nil }
    let rest = type.dropFirst()
    switch first {
    case "b", "y", "n", "q", "i", "u", "x", "t", "h", "d", "s", "o", "g", "v": return rest
    case "^": return rest.hasPrefix("ay") ? rest.dropFirst(2) : nil
    case "a", "m": return self.rest(after: rest, depth + 1)
    case "(":
      var rest = rest
      while rest.first != ")" {
        guard let next = self.rest(after: rest, depth + 1) else { return nil }
        rest = next
      }
      return rest.dropFirst()
    case "{":
      guard let key = rest.first, "bynqiuxthdsog".contains(key),
        let next = self.rest(after: rest.dropFirst(), depth + 1), next.first == "}"
      else { return nil }
      return next.dropFirst()
    default: return nil
    }
  }
}
