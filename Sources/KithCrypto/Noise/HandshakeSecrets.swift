import CSodium

/// The secrets of one handshake, given and computed, in one piece of guarded memory.
package struct HandshakeSecrets: ~Copyable, Sendable {
  var memory: GuardedBuffer
  let ephemeralPublicKey: TransportPublicKey
  let staticPublicKey: TransportPublicKey?
  private(set) var presharedKeyCount = 0

  /// The maximum of any pattern: before the first message, and after each of three.
  static let presharedKeyLimit = 4

  /// The ephemeral key must be random, for this handshake alone.
  package init(ephemeral: borrowing TransportPrivateKey) {
    memory = GuardedBuffer(count: Place.end)
    ephemeralPublicKey = ephemeral.publicKey
    staticPublicKey = nil
    ephemeral.withUnsafeBytes { store($0, at: Place.ephemeralKey) }
  }

  /// The ephemeral key must be random, for this handshake alone.
  package init(
    ephemeral: borrowing TransportPrivateKey, staticKey: borrowing TransportPrivateKey
  ) {
    memory = GuardedBuffer(count: Place.end)
    ephemeralPublicKey = ephemeral.publicKey
    staticPublicKey = staticKey.publicKey
    ephemeral.withUnsafeBytes { store($0, at: Place.ephemeralKey) }
    staticKey.withUnsafeBytes { store($0, at: Place.staticKey) }
  }

  /// Adds the key for the pattern's next `psk`; throws `wrongPresharedKeyCount` after the fourth.
  package mutating func add(_ key: borrowing PresharedKey) throws(NoiseError) {
    guard presharedKeyCount < Self.presharedKeyLimit else {
      throw .wrongPresharedKeyCount(
        expected: Self.presharedKeyLimit, actual: presharedKeyCount + 1)
    }
    let place = Place.presharedKey(presharedKeyCount)
    key.withUnsafeBytes { store($0, at: place) }
    presharedKeyCount += 1
  }

  mutating func wipe() {
    memory.withUnsafeMutableBytes { Sodium.zero($0) }
  }

  mutating func store(_ bytes: UnsafeRawBufferPointer, at place: Range<Int>) {
    memory.withUnsafeMutableBytes {
      UnsafeMutableRawBufferPointer(rebasing: $0[place]).copyMemory(from: bytes)
    }
  }

  enum Place {
    static let chainingKey = 0..<64
    static let cipherKey = 64..<96
    static let staticKey = 96..<128
    static let ephemeralKey = 128..<160
    static let sharedSecret = 160..<192
    static let scratch = 192..<256
    static let outputs = 256..<448
    static let end = 448 + 32 * presharedKeyLimit

    static func presharedKey(_ index: Int) -> Range<Int> {
      (448 + 32 * index)..<(480 + 32 * index)
    }
  }
}
