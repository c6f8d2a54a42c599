package import KithCrypto

/// The error for a text that is not a pairing code.
package enum PairingCodeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A character is neither a digit nor one that is ignored.
  case invalidCharacter(Character)
  /// There are too few or too many digits.
  case wrongLength(Int)
  /// The check digit is wrong: a digit was mistyped, or two were exchanged.
  case checkDigit

  /// The cause, as the end of a sentence.
  package var description: String {
    switch self {
    case .invalidCharacter(let character):
      "no code has the character \(String(character).debugDescription)"
    case .wrongLength(let count): "a code has \(PairingCode.digits) digits, this has \(count)"
    case .checkDigit: "a digit is wrong, or two have changed places"
    }
  }
}

/// The short code of an invitation, to read aloud and type: seven random digits, and one that finds
/// typing errors before anything is sent.
///
/// It can be guessed, so use it only with ``CodeInviter`` and ``CodeJoiner``, with which each guess
/// costs an exchange.
package final class PairingCode: Sendable {
  /// The number of digits of a code.
  package static let digits = 8
  /// The maximum number of characters of a text that is read as a code.
  package static let maximumCharacters = 64

  /// The digits in ASCII: the password of the exchange.
  let password: SecretBytes

  /// Draws one of the ten million codes, each with equal probability.
  package init(random entropy: inout some Entropy) {
    let count: UInt32 = 10_000_000
    var number: UInt32
    repeat {
      number = entropy.bytes(4).reduce(0) { $0 << 8 | UInt32($1) }
    } while number >= UInt32.max / count * count
    number %= count
    var digits: [UInt8] = []
    for _ in 1..<Self.digits {
      digits.insert(UInt8(number % 10), at: 0)
      number /= 10
    }
    password = Self.password(of: digits + [Damm.checkDigit(of: digits)])
  }

  /// Reads a typed code: digits of any script, with spaces, hyphens and dots anywhere, and O, I and
  /// L for the digits they resemble.
  ///
  /// - Throws: ``PairingCodeError``; then nothing has been sent.
  package init(text: String) throws(PairingCodeError) {
    guard text.utf8.count <= 4 * Self.maximumCharacters else {
      throw .wrongLength(text.utf8.count)
    }
    var digits: [UInt8] = []
    for character in text where !Self.isOverlooked(character) {
      guard let digit = Self.digit(character) else { throw .invalidCharacter(character) }
      digits.append(digit)
    }
    guard digits.count == Self.digits else { throw .wrongLength(digits.count) }
    guard Damm.isValid(digits) else { throw .checkDigit }
    password = Self.password(of: digits)
  }

  /// The code as it is displayed, such as `4071-3352`.
  package var text: String {
    let digits = password.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    return "\(digits.prefix(Self.digits / 2))-\(digits.suffix(Self.digits / 2))"
  }

  private static func password(of digits: [UInt8]) -> SecretBytes {
    SecretBytes(count: digits.count) { target in
      for (index, digit) in digits.enumerated() { target[index] = 0x30 + digit }
    }
  }

  private static func digit(_ character: Character) -> UInt8? {
    switch character {
    case "O", "o": 0
    case "I", "i", "L", "l": 1
    default:
      character.isWholeNumber
        ? character.wholeNumberValue.flatMap { (0...9).contains($0) ? UInt8($0) : nil } : nil
    }
  }

  private static func isOverlooked(_ character: Character) -> Bool {
    character.isWhitespace || "-‐‑–—._".contains(character)
  }
}

/// H. Michael Damm's check digit (2004). It finds every single wrong digit and every exchange of
/// two neighbours.
enum Damm {
  private static let table: [[UInt8]] = [
    [0, 3, 1, 7, 5, 9, 8, 6, 4, 2], [7, 0, 9, 2, 1, 5, 4, 8, 6, 3],
    [4, 2, 0, 6, 8, 7, 1, 3, 5, 9], [1, 7, 5, 0, 9, 8, 3, 4, 2, 6],
    [6, 1, 2, 3, 0, 4, 5, 9, 7, 8], [3, 6, 7, 4, 2, 0, 9, 5, 8, 1],
    [5, 8, 6, 9, 7, 2, 0, 1, 3, 4], [8, 9, 4, 5, 3, 6, 2, 0, 1, 7],
    [9, 4, 3, 8, 6, 1, 7, 2, 0, 5], [2, 5, 8, 1, 4, 3, 6, 7, 9, 0],
  ]

  /// Returns the check digit to append to the others.
  static func checkDigit(of digits: [UInt8]) -> UInt8 {
    digits.reduce(0) { table[Int($0)][Int($1)] }
  }

  /// Returns whether the last digit is the check digit of the others.
  static func isValid(_ digits: [UInt8]) -> Bool { checkDigit(of: digits) == 0 }
}
