/// Douglas Crockford's base 32, without the letters I, L, O and U.
enum Crockford {
  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")

  /// Encodes big-endian, five bits a character; zero bits fill the last one.
  static func encode(_ bytes: [UInt8]) -> String {
    var text = ""
    var buffer: UInt32 = 0
    var bits = 0
    for byte in bytes {
      buffer = (buffer & 0x1f) << 8 | UInt32(byte)
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(alphabet[Int(buffer >> UInt32(bits)) & 31])
      }
    }
    if bits > 0 { text.append(alphabet[Int(buffer << UInt32(5 - bits)) & 31]) }
    return text
  }

  /// Returns nil if a character is not in the alphabet, or the filling is not zero bits.
  static func decode(_ text: some Sequence<Character>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer: UInt32 = 0
    var bits = 0
    for character in text {
      guard let value = value(of: character) else { return nil }
      buffer = (buffer & 0x7f) << 5 | UInt32(value)
      bits += 5
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: buffer >> UInt32(bits)))
      }
    }
    guard bits < 5, buffer & ((1 << UInt32(bits)) - 1) == 0 else { return nil }
    return bytes
  }

  /// Reads either case, I and L as 1, O as 0.
  static func value(of character: Character) -> UInt8? {
    guard let ascii = character.asciiValue else { return nil }
    let upper = (0x61...0x7a).contains(ascii) ? ascii - 0x20 : ascii
    switch upper {
    case UInt8(ascii: "O"): return 0
    case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
    default:
      return alphabet.firstIndex(of: Character(Unicode.Scalar(upper)))
        .map { UInt8(truncatingIfNeeded: $0) }
    }
  }

  static func isSeparator(_ character: Character) -> Bool {
    character == "-" || character.isWhitespace
  }

  static func grouped(_ text: String, by size: Int) -> String {
    var result = ""
    for (index, character) in text.enumerated() {
      if index > 0, index.isMultiple(of: size) { result.append("-") }
      result.append(character)
    }
    return result
  }
}
