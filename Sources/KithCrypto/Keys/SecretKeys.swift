import CSodium

/// A secret of 32 bytes in guarded memory; one type for each purpose, so that no key serves
/// another.
package protocol SecretKey: ~Copyable, Sendable {
  /// Wraps 32 bytes; the caller has checked the count. Outside this module, use `init(_:)`.
  init(unchecked secret: consuming SecretBytes)

  /// The pointer is valid only during the call.
  borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R
}

package let secretKeyByteCount = 32

extension SecretKey where Self: ~Copyable {
  /// Throws `wrongLength` unless there are 32 bytes.
  package init(_ secret: consuming SecretBytes) throws(CryptoError) {
    let actual = secret.count
    guard actual == secretKeyByteCount else {
      throw .wrongLength(expected: secretKeyByteCount, actual: actual)
    }
    self.init(unchecked: secret)
  }

  /// Copies 32 bytes and zeroes the source, even if it throws `wrongLength`.
  package init(zeroing bytes: inout [UInt8]) throws(CryptoError) {
    try self.init(SecretBytes(zeroing: &bytes))
  }

  package init(random entropy: inout some Entropy) {
    self.init(unchecked: SecretBytes(random: secretKeyByteCount, using: &entropy))
  }

  package borrowing func copy() -> Self {
    Self(
      unchecked: withUnsafeBytes { source in
        SecretBytes(count: source.count) { $0.copyMemory(from: source) }
      })
  }

  /// Compares in constant time.
  package borrowing func isSame(as other: borrowing Self) -> Bool {
    withUnsafeBytes { left in
      other.withUnsafeBytes { right in Sodium.equal(left, right) }
    }
  }
}

/// The seed of an Ed25519 signing key.
package struct SigningSeed: SecretKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// The seed of an X25519 box key.
package struct BoxSeed: SecretKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// The secret that the members of one epoch share; keys are derived from it.
package struct EpochSecret: SecretKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// The account's recovery key, which is shown once and stays on no device.
package struct RecoverySeed: SecretKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// A pre-shared key of the Noise handshake.
package struct PresharedKey: SecretKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// The key that hashes store identifiers to store tags.
package struct StoreTagKey: SecretKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// The key that seals beacons.
package struct BeaconKey: SecretBoxKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// An epoch's key that seals the objects on carriers.
package struct CarrierKey: SecretBoxKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// An account's key that seals the outer layer of objects on carriers.
package struct CarrierOuterKey: SecretBoxKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// The key by which members recognise the names of objects on carriers.
package struct CarrierNameKey: SecretKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// The key that seals data on this device's disk.
package struct StorageKey: SecretBoxKey, ~Copyable {
  private let secret: SecretBytes

  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// An X25519 private key of the Noise handshake, static or ephemeral.
package struct TransportPrivateKey: SecretKey, ~Copyable {
  private let secret: SecretBytes

  package let publicKey: TransportPublicKey

  /// Wraps 32 bytes, and computes the public key; the caller has checked the count.
  package init(unchecked secret: consuming SecretBytes) {
    publicKey = secret.withUnsafeBytes { secret in
      TransportPublicKey { _ = crypto_scalarmult_base($0.bytePointer, secret.bytePointer) }
    }
    self.secret = secret
  }

  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// An X25519 key that boxes are sealed to and from (`crypto_box_seed_keypair`).
package struct BoxKey: ~Copyable, Sendable {
  private let secret: SecretBytes

  /// The key that others seal to.
  package let publicKey: BoxPublicKey

  package init(seed: borrowing BoxSeed) {
    var publicKey = BoxPublicKey(storage: Bytes32())
    secret = seed.withUnsafeBytes { seed in
      SecretBytes(count: Int(crypto_box_SECRETKEYBYTES)) { secret in
        publicKey = BoxPublicKey {
          _ = crypto_box_seed_keypair($0.bytePointer, secret.bytePointer, seed.bytePointer)
        }
      }
    }
    self.publicKey = publicKey
  }

  /// Passes the private key; the pointer is valid only during the call.
  borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}
