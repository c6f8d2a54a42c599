import CSodium

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
