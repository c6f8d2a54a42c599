import KithCore

/// Formats bytes as text.
enum Hexadecimal {
  /// Returns two lower-case digits for each byte.
  static func text(_ bytes: [UInt8]) -> String {
    var text = ""
    for byte in bytes {
      if byte < 16 { text += "0" }
      text += String(byte, radix: 16)
    }
    return text
  }

  /// Returns the fingerprint of a device whose id is given in hexadecimal; the text itself if it is
  /// not an id.
  static func fingerprint(_ text: String) -> String {
    guard let device = DeviceID(hex: text) else { return text }
    return Fingerprint(of: device).description
  }
}
