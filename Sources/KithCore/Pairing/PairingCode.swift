package import KithCrypto

package enum PairingCodeError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Neither a digit nor a character that is ignored.
  case invalidCharacter(Character)
  /// The number of digits; of a text that is too long, of its bytes.
  case wrongLength(Int)
  /// A digit was mistyped, or two were exchanged.
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

/// An invitation's code to read aloud and type: seven random digits and a check digit.
///
/// It can be guessed: use it only with ``CodeInviter`` and ``CodeJoiner``, where each guess costs
/// an exchange.
package final class PairingCode: Sendable {
  package static let digits = 8
  /// The most characters of a text that is read as a code.
  package static let maximumCharacters = 64

  /// The digits in ASCII.
  let password: SecretBytes

  /// Draws one of ten million codes, all equally probable.
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

  /// Reads a typed code: digits of any script, O as 0, I and L as 1, with spaces, hyphens and dots
  /// anywhere.
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

  /// As displayed, such as `4071-3352`.
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

/// H. Michael Damm's check digit (2004): finds every wrong digit and every exchange of two
/// neighbours.
enum Damm {
  private static let table: [[UInt8]] = [
    [0, 3, 1, 7, 5, 9, 8, 6, 4, 2], [7, 0, 9, 2, 1, 5, 4, 8, 6, 3],
    [4, 2, 0, 6, 8, 7, 1, 3, 5, 9], [1, 7, 5, 0, 9, 8, 3, 4, 2, 6],
    [6, 1, 2, 3, 0, 4, 5, 9, 7, 8], [3, 6, 7, 4, 2, 0, 9, 5, 8, 1],
    [5, 8, 6, 9, 7, 2, 0, 1, 3, 4], [8, 9, 4, 5, 3, 6, 2, 0, 1, 7],
    [9, 4, 3, 8, 6, 1, 7, 2, 0, 5], [2, 5, 8, 1, 4, 3, 6, 7, 9, 0],
  ]

  static func checkDigit(of digits: [UInt8]) -> UInt8 {
    digits.reduce(0) { table[Int($0)][Int($1)] }
  }

  static func isValid(_ digits: [UInt8]) -> Bool { checkDigit(of: digits) == 0 }
}
