/// An Ed25519 public key, which verifies signatures; a device's id is one.
public struct SigningPublicKey: FixedBytes {
  /// The bytes.
  public let storage: Bytes32

  /// Makes the value with these bytes.
  @inlinable public init(storage: Bytes32) { self.storage = storage }
}

/// An X25519 public key that boxes are sealed to or from.
public struct BoxPublicKey: FixedBytes {
  /// The bytes.
  public let storage: Bytes32

  /// Makes the value with these bytes.
  @inlinable public init(storage: Bytes32) { self.storage = storage }
}

/// An X25519 public key of the Noise handshake, static or ephemeral.
public struct TransportPublicKey: FixedBytes {
  /// The bytes.
  public let storage: Bytes32

  /// Makes the value with these bytes.
  @inlinable public init(storage: Bytes32) { self.storage = storage }
}
