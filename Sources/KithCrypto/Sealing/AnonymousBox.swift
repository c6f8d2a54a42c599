import CSodium

/// An anonymous box in the format of `crypto_box_seal`: the ephemeral public key, then the box
/// under a nonce hashed from both public keys.
///
/// The caller passes the ephemeral key, which makes sealing a pure function.
package enum AnonymousBox {
  package static let overhead = BoxPublicKey.byteCount + SharedBox.overhead

  /// Reads the secret in place. Throws `invalidKey` if `recipient` is of low order. The `ephemeral`
  /// seed must be random, for this box alone.
  package static func seal<Secret: SecretKey & ~Copyable>(
    secret: borrowing Secret, to recipient: BoxPublicKey, ephemeral: borrowing BoxSeed
  ) throws(CryptoError) -> [UInt8] {
    let sender = BoxKey(seed: ephemeral)
    let input = sender.publicKey.bytes + recipient.bytes
    let nonce = BoxNonce {
      _ = crypto_generichash($0.bytePointer, $0.count, input, UInt64(input.count), nil, 0)
    }
    var sealed = sender.publicKey.bytes
    let isValid = secret.withUnsafeBytes { secret in
      sealed.append(contentsOf: repeatElement(0, count: secret.count + SharedBox.overhead))
      return sealed.withUnsafeMutableBytes { sealed in
        let target = UnsafeMutableRawBufferPointer(rebasing: sealed[BoxPublicKey.byteCount...])
        return nonce.withUnsafeBytes { nonce in
          recipient.withUnsafeBytes { recipient in
            sender.withUnsafeBytes { sender in
              crypto_box_easy(
                target.bytePointer, secret.bytePointer, UInt64(secret.count), nonce.bytePointer,
                recipient.bytePointer, sender.bytePointer) == 0
            }
          }
        }
      }
    }
    guard isValid else { throw .invalidKey }
    return sealed
  }

  /// Opens into guarded memory; throws `authenticationFailed` unless the box was sealed to `key`.
  package static func openSecret(
    _ sealed: [UInt8], with key: borrowing BoxKey
  ) throws(CryptoError) -> SecretBytes {
    guard sealed.count >= overhead else { throw .authenticationFailed }
    let publicKey = key.publicKey
    return try key.withUnsafeBytes { secretKey throws(CryptoError) in
      try SecretBytes(count: sealed.count - overhead) { target throws(CryptoError) in
        let isAuthentic = publicKey.withUnsafeBytes { publicKey in
          crypto_box_seal_open(
            target.bytePointer, sealed, UInt64(sealed.count), publicKey.bytePointer,
            secretKey.bytePointer) == 0
        }
        guard isAuthentic else { throw .authenticationFailed }
      }
    }
  }
}
