/// GVariant's type strings (GLib, "GVariant Type Strings"), and two of our own: `^ay` is a
/// bytestring `b'…'`, and `a*` an array whose elements nobody has seen.
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
  /// Of an integer without a type.
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
    case "b", "y", "n", "q", "i", "u", "x", "t", "h", "d", "s", "o", "g", "v", "*": return rest
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
