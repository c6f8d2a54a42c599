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
      guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value)
      else { return nil }
      bytes.append(high << 4 | low)
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
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: "-._~".utf8.contains(byte)
    }
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
