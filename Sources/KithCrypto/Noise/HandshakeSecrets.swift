import CSodium

/// The secrets of one handshake, in one piece of guarded memory: what the program gives, and
/// what the handshake computes.
public struct HandshakeSecrets: ~Copyable, Sendable {
  var memory: GuardedBuffer
  let ephemeralPublicKey: TransportPublicKey
  let staticPublicKey: TransportPublicKey?
  private(set) var presharedKeyCount = 0

  /// The most pre-shared keys that any pattern takes: before the first and after three messages.
  static let presharedKeyLimit = 4

  /// For a side without a static key. The ephemeral key is fresh and random for one handshake.
  public init(ephemeral: borrowing TransportPrivateKey) {
    memory = GuardedBuffer(count: Place.end)
    ephemeralPublicKey = ephemeral.publicKey
    staticPublicKey = nil
    ephemeral.withUnsafeBytes { store($0, at: Place.ephemeralKey) }
  }

  /// For a side with a static key. The ephemeral key is fresh and random for one handshake.
  public init(
    ephemeral: borrowing TransportPrivateKey, staticKey: borrowing TransportPrivateKey
  ) {
    memory = GuardedBuffer(count: Place.end)
    ephemeralPublicKey = ephemeral.publicKey
    staticPublicKey = staticKey.publicKey
    ephemeral.withUnsafeBytes { store($0, at: Place.ephemeralKey) }
    staticKey.withUnsafeBytes { store($0, at: Place.staticKey) }
  }

  /// Adds the pre-shared key for the next `psk` of the pattern.
  ///
  /// Throws `wrongPresharedKeyCount` after the fourth, which no pattern takes.
  public mutating func add(_ key: borrowing PresharedKey) throws(NoiseError) {
    guard presharedKeyCount < Self.presharedKeyLimit else {
      throw .wrongPresharedKeyCount(
        expected: Self.presharedKeyLimit, actual: presharedKeyCount + 1)
    }
    let place = Place.presharedKey(presharedKeyCount)
    key.withUnsafeBytes { store($0, at: place) }
    presharedKeyCount += 1
  }

  /// Zeroes everything.
  mutating func wipe() {
    memory.withUnsafeMutableBytes { Sodium.zero($0) }
  }

  mutating func store(_ bytes: UnsafeRawBufferPointer, at place: Range<Int>) {
    memory.withUnsafeMutableBytes {
      UnsafeMutableRawBufferPointer(rebasing: $0[place]).copyMemory(from: bytes)
    }
  }

  /// Where each secret lies in the memory.
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
