package import FoundationEssentials

extension Double {
  /// Reads a number as `Double` does. Nil also if it is beyond a double's range: `Double` reads such a
  /// number as infinity, or as 0.
  package init?(withinRange text: String) {
    guard let double = Double(text) else { return nil }
    // `Double` takes nan(…) too.
    let isNamed = ["inf", "infinity", "nan"].contains(text.lowercased().drop { "+-".contains($0) })
    // The digits before the exponent, also of a hexadecimal number.
    let exponent = text.lowercased().contains("x") ? "pP" : "eE"
    let mantissa = text.prefix { !exponent.contains($0) }
    let isRounded = double.isZero && mantissa.contains { $0.isHexDigit && $0 != "0" }
    guard double.isFinite || isNamed, !isRounded else { return nil }
    self = double
  }
}

extension Data {
  /// Reads base64. Nil also if the same bytes are written otherwise: `Data` takes `AB==` for `AA==`, and
  /// padding without digits for zero bytes.
  package init?(canonicalBase64 text: String) {
    guard let data = Data(base64Encoded: text), data.base64EncodedString() == text else {
      return nil
    }
    self = data
  }
}
