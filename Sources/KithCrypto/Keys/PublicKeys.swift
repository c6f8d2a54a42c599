/// An X25519 public key that boxes are sealed to or from.
package struct BoxPublicKey: FixedBytes {
  package let storage: Bytes32

  @inlinable package init(storage: Bytes32) { self.storage = storage }
}

/// An X25519 public key of the Noise handshake, static or ephemeral.
package struct TransportPublicKey: FixedBytes {
  package let storage: Bytes32

  @inlinable package init(storage: Bytes32) { self.storage = storage }
}
