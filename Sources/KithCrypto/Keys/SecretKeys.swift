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

/// The key that seals the objects on carriers.
package struct CarrierKey: SecretBoxKey, ~Copyable {
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
