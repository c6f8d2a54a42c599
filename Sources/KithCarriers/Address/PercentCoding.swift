/// Percent-encoding of URLs (RFC 3986, section 2.1).
enum PercentCoding {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// Encodes all but letters, digits and `-._~`, as signatures of AWS demand.
  /// A slash stays one if `keepsSlash`, as in paths.
  static func encode(_ text: some StringProtocol, keepsSlash: Bool = false) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if isUnreserved(byte) || keepsSlash && byte == UInt8(ascii: "/") {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Nil if an escape is broken, or the bytes are not UTF-8 or hold a zero.
  static func decode(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2).compactMap { Character(UnicodeScalar($0)).hexDigitValue }
      guard digits.count == 2 else { return nil }
      bytes.append(UInt8(digits[0] << 4 | digits[1]))
      rest = rest.dropFirst(2)
    }
    return bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
  }

  /// Whether each byte may stand in a segment of a path as it is.
  static func isEncoded(_ text: String) -> Bool {
    decode(text) != nil
      && text.utf8.allSatisfy {
        isUnreserved($0) || "%!$&'()*+,;=:@".utf8.contains($0)
      }
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    ObjectNames.isPart(byte) || ".~".utf8.contains(byte)
  }
}
