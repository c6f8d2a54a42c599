/// The effect of another device's character on a terminal, and on who reads it.
package enum CharacterEffect {
  case drawn
  /// The character moves the cursor, or changes the terminal's state or the direction of later
  /// text.
  case obeyed
  /// The character is invisible: two texts would look alike.
  case unseen

  /// Terminals obey C0, C1 and Unicode's bidirectional controls. Characters without width are
  /// invisible, except those that choose an emoji's form.
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
