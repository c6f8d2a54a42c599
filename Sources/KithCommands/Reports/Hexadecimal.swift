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

  /// The fingerprint of a device whose id is given in hexadecimal; the text itself where it is none.
  static func fingerprint(_ text: String) -> String {
    guard let device = DeviceID(hex: text) else { return text }
    return Fingerprint(of: device).description
  }
}
