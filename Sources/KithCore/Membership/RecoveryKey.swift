package import KithCrypto

/// The error for a text that is not a recovery key. It repeats one typed character at most.
package enum RecoveryKeyError: Error, Hashable, Sendable {
  /// The text has not the 56 characters of a key; spaces and hyphens do not count.
  case wrongLength(characters: Int, expected: Int)
  /// The text has an impossible character, in this group, counted from 1.
  case invalidCharacter(Character, group: Int)
  /// The checksum is wrong: one or more characters are.
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

/// The account's recovery key, which stays on no device (`Docs/Protocol.md`, "Membership").
///
/// Its text is 14 groups of 4 characters: Crockford base32 of the 32-byte seed and 3 bytes of
/// BLAKE2b-256 over `kith recovery key v1`, a zero byte and the seed. Its keys are derived by
/// `crypto_kdf` with the context `KithReco`: 1 signs, 2 opens.
package final class RecoveryKey: Sendable {
  /// The number of characters of the text, without hyphens.
  package static let characters = 56
  private static let groupSize = 4
  private static let checksumBytes = 3

  /// Signs the genesis, and certificates if no device is left.
  let signing: SigningKey
  /// Opens every epoch.
  let box: BoxKey
  private let seed: RecoverySeed

  /// The public key that verifies its signatures.
  package var signingPublicKey: SigningPublicKey { signing.publicKey }
  /// The public key that epochs are sealed to.
  package var boxPublicKey: BoxPublicKey { box.publicKey }

  /// Derives the keys of a seed.
  package init(seed: consuming RecoverySeed) {
    let signingSeed: SigningSeed = KeyDerivation.derive(1, context: "KithReco", from: seed)
    let boxSeed: BoxSeed = KeyDerivation.derive(2, context: "KithReco", from: seed)
    signing = SigningKey(seed: signingSeed)
    box = BoxKey(seed: boxSeed)
    self.seed = seed
  }

  /// Draws a new key.
  package convenience init(entropy: inout some Entropy) {
    self.init(seed: RecoverySeed(random: &entropy))
  }

  /// Reads a typed text. I and L are read as 1, O as 0, in either case; hyphens and white space
  /// are ignored.
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

  /// The text to show once: 14 groups of 4 characters, with hyphens between.
  package var text: String {
    let seed = seed.withUnsafeBytes { [UInt8]($0) }
    return Crockford.grouped(Crockford.encode(seed + Self.checksum(seed)), by: Self.groupSize)
  }

  private static func checksum(_ seed: [UInt8]) -> [UInt8] {
    let digest = Blake2b.digest256(Array("kith recovery key v1".utf8), [0], seed)
    return Array(digest.bytes.prefix(checksumBytes))
  }
}
