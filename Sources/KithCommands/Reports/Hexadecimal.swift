import KithCore

/// Bytes as text.
enum Hexadecimal {
  /// Two lower-case digits a byte.
  static func text(_ bytes: [UInt8]) -> String {
    var text = ""
    for byte in bytes {
      if byte < 16 { text += "0" }
      text += String(byte, radix: 16)
    }
    return text
  }

  /// The bytes that pairs of digits name, or nil where the text is something else.
  static func bytes(_ text: String) -> [UInt8]? {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { index in
      UInt8(digits[index] << 4 | digits[index + 1])
    }
  }

  /// The fingerprint of a device whose id is given in hexadecimal; the text itself where it is none.
  static func fingerprint(_ text: String) -> String {
    guard let bytes = bytes(text), let device = try? DeviceID(bytes) else { return text }
    return Fingerprint(of: device).description
  }
}
