/// The effect of another device's character on a terminal, and on who reads it.
package enum CharacterEffect {
  case drawn
  /// The character moves the cursor, or changes the terminal's state or the direction of later
  /// text.
  case obeyed
  /// The character is invisible, or as blank as a space: two texts would look alike.
  case unseen

  /// Terminals obey C0, C1 and Unicode's bidirectional controls. Characters without width are
  /// invisible, except those that choose an emoji's form (U+FE0E and U+FE0F); so are noncharacters,
  /// and all blanks but the space.
  package init(_ scalar: Unicode.Scalar) {
    self =
      switch scalar.value {
      case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069:
        .obeyed
      case 0xA0, 0xAD, 0x034F, 0x115F...0x1160, 0x1680, 0x17B4...0x17B5, 0x180B...0x180F,
        0x2000...0x200D, 0x202F, 0x205F...0x2065, 0x206A...0x206F, 0x2800, 0x3000, 0x3164,
        0xFDD0...0xFDEF, 0xFE00...0xFE0D, 0xFEFF, 0xFFA0, 0xFFF0...0xFFFB, 0x13430...0x1343F,
        0x1BCA0...0x1BCA3, 0x1D159, 0x1D173...0x1D17A, 0xE0000...0xE0FFF:
        .unseen
      case let value where value & 0xFFFE == 0xFFFE: .unseen
      default: .drawn
      }
  }
}
