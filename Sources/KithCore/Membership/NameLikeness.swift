/// Decides whether people would mistake one device's name for another's.
///
/// It limits only new names: membership does not depend on it, so the table may grow.
enum NameLikeness {
  /// Returns whether two different names look the same. Equal names are allowed: people chose them.
  ///
  /// - Complexity: O(*n*).
  static func areMistakable(_ one: String, _ other: String) -> Bool {
    !one.utf8.elementsEqual(other.utf8) && appearance(one) == appearance(other)
  }

  /// Maps a name to narrow letters of one script, without variation selectors, white space to one
  /// space. `String` compares by canonical equivalence.
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

  /// Cyrillic and Greek letters that look Latin.
  private static let latin = Dictionary(
    uniqueKeysWithValues: zip(
      "аеорсухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅԚԜαινορυΑΒΕΖΗΙΚΜΝΟΡΤΥΧ".unicodeScalars,
      "aeopcyxijshdqwABEKMHOPCTYXIJSQWaivopuABEZHIKMNOPTYX".unicodeScalars))
}
