import KithCore

extension Columns {
  /// Returns one line for a name, a key or a string, which come from other devices: obeyed and
  /// invisible characters as numbers, and so spaces at the ends; a backslash doubled. So different
  /// texts look different. Not for a text that has been shown already: its backslashes would double.
  ///
  /// If texts are canonically equivalent, at most the composed one (NFC) is shown as it is. The others
  /// show by number what distinguishes them: `é` and `e\u{301}`.
  package static func printable(_ text: String, limit: Int = .max) -> String {
    line(text, limit, isExact: true)
  }

  /// Returns one line for a sentence, which may quote ``printable(_:limit:)``, or for a document:
  /// as that, but backslashes and spaces stay. To apply it twice changes nothing.
  package static func sentence(_ text: String, limit: Int = .max) -> String {
    line(text, limit, isExact: false)
  }

  private static func line(_ text: String, _ limit: Int, isExact: Bool) -> String {
    let isComposed = text.isComposed
    let inner = isExact ? text.firstIndex { $0 != " " } ?? text.endIndex : text.startIndex
    let last = isExact ? text.lastIndex { $0 != " " } ?? text.startIndex : text.endIndex
    var shown = ""
    var count = 0
    for (index, character) in zip(text.indices, text) {
      if count >= limit { return shown + "…" }
      count += 1
      let isOuter = index < inner || index > last
      var before: Unicode.Scalar?
      for scalar in character.unicodeScalars {
        switch (scalar, CharacterEffect(scalar)) {
        case ("\n", _): shown += "\\n"
        case ("\t", _): shown += "\\t"
        case ("\\", _) where isExact: shown += "\\\\"
        case (" ", _) where isOuter: shown += number(scalar)
        case ("\u{FE0E}", _), ("\u{FE0F}", _):
          shown += before?.hasEmojiForms == true ? String(scalar) : number(scalar)
        case (_, .drawn) where isComposed || !scalar.mayCompose:
          shown.unicodeScalars.append(scalar)
        default: shown += number(scalar)
        }
        before = scalar
      }
    }
    return shown
  }

  /// Shows obeyed characters as numbers, except line feeds and tabs. Lines after the first begin
  /// with `indent`, so that none looks like another message.
  package static func readable(_ text: String, indent: String = "  ") -> String {
    var shown = ""
    for scalar in text.unicodeScalars { shown += scalar == "\n" ? "\n" + indent : harmless(scalar) }
    return shown
  }

  /// Shows obeyed characters as numbers, except line feeds, tabs and colours (``Style``).
  package static func coloured(_ text: String) -> String {
    var shown = ""
    var rest = text.unicodeScalars[...]
    while let scalar = rest.first {
      let colour = colour(beginning: rest)
      if !colour.isEmpty {
        shown.unicodeScalars.append(contentsOf: colour)
        rest = rest.dropFirst(colour.count)
        continue
      }
      shown += harmless(scalar)
      rest.removeFirst()
    }
    return shown
  }

  /// `ESC [ digits and semicolons m` (ECMA-48, SGR): it moves nothing and says nothing. Empty if the
  /// text begins with another character.
  private static func colour(
    beginning text: Substring.UnicodeScalarView
  ) -> Substring.UnicodeScalarView {
    let body = text.dropFirst(2).prefix { ("0"..."9").contains($0) || $0 == ";" }
    guard text.starts(with: ["\u{1B}", "["]), text[body.endIndex...].first == "m" else {
      return text.prefix(0)
    }
    return text[...body.endIndex]
  }

  private static func harmless(_ scalar: Unicode.Scalar) -> String {
    let isObeyed = CharacterEffect(scalar) == .obeyed && scalar != "\n" && scalar != "\t"
    return isObeyed ? number(scalar) : String(scalar)
  }

  private static func number(_ scalar: Unicode.Scalar) -> String {
    "\\u{" + String(scalar.value, radix: 16) + "}"
  }
}

extension String {
  /// Whether the text is in Unicode's Normalization Form C.
  fileprivate var isComposed: Bool {
    var bytes = utf8Span
    return bytes.checkForNFC(quickCheck: false)
  }
}

extension Unicode.Scalar {
  /// Whether U+FE0E and U+FE0F choose how the scalar is drawn. Not of digits: the two would be seen
  /// only in a keycap.
  fileprivate var hasEmojiForms: Bool { properties.isEmoji && !isASCII }

  /// Whether the scalar may be another, or join the one before it, in Normalization Form C (Unicode
  /// Standard Annex 15): marks, the vowels and finals of Hangul, and those that are never composed.
  fileprivate var mayCompose: Bool {
    switch properties.generalCategory {
    case .nonspacingMark, .spacingMark, .enclosingMark: true
    default: properties.isFullCompositionExclusion || (0x1160...0x11FF).contains(value)
    }
  }
}
