/// Whether a person takes one device's name for another's.
///
/// This decides only what a device of this version signs: what counts does not depend on it, so the
/// table may grow.
enum NameLikeness {
  /// Whether two names that differ look the same. Names that are the same are two people's choice, and
  /// told to them.
  ///
  /// - Complexity: O(*n*) in the names' length.
  static func areMistakable(_ one: String, _ other: String) -> Bool {
    !one.utf8.elementsEqual(other.utf8) && appearance(one) == appearance(other)
  }

  /// The name in letters of one script, wide letters made narrow, without variation selectors, and with
  /// a single space for any white space. `String` itself compares by canonical equivalence.
  private static func appearance(_ name: String) -> String {
    var shown = String.UnicodeScalarView()
    var isAfterSpace = true
    for scalar in name.unicodeScalars where !(0xfe00...0xfe0f).contains(scalar.value) {
      let isSpace = scalar.properties.isWhitespace
      if isSpace, isAfterSpace { continue }
      isAfterSpace = isSpace
      shown.append(isSpace ? " " : letter(scalar))
    }
    if isAfterSpace, !shown.isEmpty { shown.removeLast() }
    return String(shown)
  }

  private static func letter(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    switch scalar.value {
    case 0xff01...0xff5e: Unicode.Scalar(scalar.value - 0xfee0) ?? scalar
    case 0x2010...0x2015, 0x2212: "-"
    default: latin[scalar] ?? scalar
    }
  }

  /// Letters of Cyrillic and Greek that are drawn as a Latin one.
  private static let latin = Dictionary(
    uniqueKeysWithValues: zip(
      "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅԚԜαινορυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ".unicodeScalars,
      "aeopcyxijshdqwABEKMHOPCTYXIJSQWaivopuABEZHIKMNOPTYX".unicodeScalars))
}
