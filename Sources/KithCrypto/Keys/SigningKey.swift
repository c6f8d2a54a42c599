import CSodium

/// An Ed25519 signature.
package struct Signature: FixedBytes {
  package let storage: Bytes64

  @inlinable package init(storage: Bytes64) { self.storage = storage }
}

/// An Ed25519 key that signs (`crypto_sign_detached`).
package struct SigningKey: ~Copyable, Sendable {
  /// Seed and public key, as libsodium keeps them.
  private let expanded: SecretBytes

  package let publicKey: SigningPublicKey

  package init(seed: borrowing SigningSeed) {
    var publicKey = SigningPublicKey(storage: Bytes32())
    expanded = seed.withUnsafeBytes { seed in
      SecretBytes(count: Int(crypto_sign_SECRETKEYBYTES)) { secret in
        publicKey = SigningPublicKey {
          _ = crypto_sign_seed_keypair($0.bytePointer, secret.bytePointer, seed.bytePointer)
        }
      }
    }
    self.publicKey = publicKey
  }

  /// Signs deterministically, in O(*n*); the message is hashed twice.
  package borrowing func sign(_ message: [UInt8]) -> Signature {
    expanded.withUnsafeBytes { secret in
      Signature {
        _ = crypto_sign_detached(
          $0.bytePointer, nil, message, UInt64(message.count), secret.bytePointer)
      }
    }
  }
}

extension SigningPublicKey {
  /// Returns whether this key's owner signed the message, in O(*n*).
  ///
  /// Keys and points of low order, and non-canonical encodings, are never valid.
  package func isValid(_ signature: Signature, for message: [UInt8]) -> Bool {
    Sodium.start()
    return withUnsafeBytes { key in
      signature.withUnsafeBytes { signature in
        crypto_sign_verify_detached(
          signature.bytePointer, message, UInt64(message.count), key.bytePointer) == 0
      }
    }
  }
}
