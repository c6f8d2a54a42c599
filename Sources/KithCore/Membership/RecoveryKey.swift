package import KithCrypto

/// The text is not a recovery key. The error repeats at most one typed character.
package enum RecoveryKeyError: Error, Hashable, Sendable {
  /// The text does not have 56 characters; spaces and hyphens do not count.
  case wrongLength(characters: Int, expected: Int)
  /// No key has this character; groups are counted from 1.
  case invalidCharacter(Character, group: Int)
  /// One or more characters are wrong.
  case checksumMismatch
}

extension RecoveryKeyError: CustomStringConvertible {
  /// The cause, as the end of a sentence.
  package var description: String {
    switch self {
    case .wrongLength(let characters, let expected):
      "it has \(characters) characters of the \(expected) of a whole key"
    case .invalidCharacter(let character, let group):
      "its group \(group) has the character \(String(character).debugDescription), which no key has"
    case .checksumMismatch: "one or more of its characters are wrong"
    }
  }
}

/// The account's recovery key, which stays on no device (`Docs/Protocol/duties.md`, "Recovery").
package final class RecoveryKey: Sendable {
  /// The characters of the text, without hyphens.
  package static let characters = 56
  private static let groupSize = 4
  private static let checksumBytes = 3

  /// Signs the genesis, and certificates if no device is left.
  let signing: SigningKey
  /// Opens every epoch.
  let box: BoxKey
  private let seed: RecoverySeed

  package var signingPublicKey: SigningPublicKey { signing.publicKey }
  package var boxPublicKey: BoxPublicKey { box.publicKey }

  package init(seed: consuming RecoverySeed) {
    let signingSeed: SigningSeed = KeyDerivation.derive(1, context: "KithReco", from: seed)
    let boxSeed: BoxSeed = KeyDerivation.derive(2, context: "KithReco", from: seed)
    signing = SigningKey(seed: signingSeed)
    box = BoxKey(seed: boxSeed)
    self.seed = seed
  }

  package convenience init(entropy: inout some Entropy) {
    self.init(seed: RecoverySeed(random: &entropy))
  }

  /// Reads a typed text: either case, I and L as 1, O as 0; hyphens and white space are ignored.
  package convenience init(text: String) throws(RecoveryKeyError) {
    var symbols: [Character] = []
    for character in text where !Crockford.isSeparator(character) {
      guard Crockford.value(of: character) != nil else {
        throw .invalidCharacter(character, group: symbols.count / Self.groupSize + 1)
      }
      symbols.append(character)
    }
    guard symbols.count == Self.characters else {
      throw .wrongLength(characters: symbols.count, expected: Self.characters)
    }
    guard var bytes = Crockford.decode(symbols), bytes.count == 35 else {
      throw .checksumMismatch
    }
    var seed = Array(bytes.prefix(secretKeyByteCount))
    let isIntact = constantTimeEquals(
      Self.checksum(seed), Array(bytes.dropFirst(secretKeyByteCount)))
    for index in bytes.indices { bytes[index] = 0 }
    guard isIntact, let recovery = try? RecoverySeed(zeroing: &seed) else {
      throw .checksumMismatch
    }
    self.init(seed: recovery)
  }

  /// The text to show once: 14 groups of 4 characters.
  package var text: String {
    let seed = seed.withUnsafeBytes { [UInt8]($0) }
    return Crockford.grouped(Crockford.encode(seed + Self.checksum(seed)), by: Self.groupSize)
  }

  private static func checksum(_ seed: [UInt8]) -> [UInt8] {
    let digest = Blake2b.digest256(Array("kith recovery key v1".utf8), [0], seed)
    return Array(digest.bytes.prefix(checksumBytes))
  }
}
