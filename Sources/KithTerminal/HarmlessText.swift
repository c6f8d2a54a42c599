/// What a terminal does with a character of somebody else's text.
package enum CharacterEffect {
  /// It is drawn.
  case drawn
  /// It moves the cursor, changes the terminal's state, or turns the direction of what follows.
  case obeyed
  /// It is not seen, so that two texts look alike.
  case unseen

  /// The effect of a character: C0, C1 and Unicode's bidirectional controls are obeyed; characters of
  /// no width are unseen, but for those that choose between two looks of an emoji.
  package init(_ scalar: Unicode.Scalar) {
    self =
      switch scalar.value {
      case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
        .obeyed
      case 0xAD, 0x034F, 0x115F...0x1160, 0x17B4...0x17B5, 0x180B...0x180F, 0x200B...0x200D,
        0x2060...0x2065, 0x206A...0x206F, 0x3164, 0xFEFF, 0xFFA0, 0xFFF0...0xFFFB,
        0xE0000...0xE0FFF:
        .unseen
      default: .drawn
      }
  }
}

extension Columns {
  /// The text on one line, with characters that are obeyed or unseen shown by their numbers: names and
  /// keys come from other devices, a terminal must not do what they say, and two of them must not look
  /// alike.
  package static func printable(_ text: String, limit: Int = .max) -> String {
    var shown = ""
    var count = 0
    for character in text {
      if count >= limit { return shown + "…" }
      count += 1
      for scalar in character.unicodeScalars {
        switch (scalar, CharacterEffect(scalar)) {
        case ("\n", _): shown += "\\n"
        case ("\t", _): shown += "\\t"
        case (_, .drawn): shown.unicodeScalars.append(scalar)
        default: shown += number(scalar)
        }
      }
    }
    return shown
  }

  /// The text in its lines, with characters that are obeyed shown by their numbers. Line feeds and tabs
  /// stay; lines after the first begin with `indent`, so that none of them looks like another message.
  package static func readable(_ text: String, indent: String = "  ") -> String {
    var shown = ""
    for scalar in text.unicodeScalars {
      switch (scalar, CharacterEffect(scalar)) {
      case ("\n", _): shown += "\n" + indent
      case ("\t", _), (_, .drawn), (_, .unseen): shown.unicodeScalars.append(scalar)
      case (_, .obeyed): shown += number(scalar)
      }
    }
    return shown
  }

  private static func number(_ scalar: Unicode.Scalar) -> String {
    "\\u{" + String(scalar.value, radix: 16) + "}"
  }
}
