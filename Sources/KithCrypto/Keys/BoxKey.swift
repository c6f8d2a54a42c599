import CSodium

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
