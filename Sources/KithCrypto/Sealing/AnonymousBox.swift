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
    guard let sealed = secret.withUnsafeBytes({ seal($0, recipient, ephemeral) }) else {
      throw .invalidKey
    }
    return sealed
  }

  /// Opens into guarded memory; throws `authenticationFailed` unless the box was sealed to `key`.
  package static func openSecret(
    _ sealed: [UInt8], with key: borrowing BoxKey
  ) throws(CryptoError) -> SecretBytes {
    guard sealed.count >= overhead else { throw .authenticationFailed }
    return try key.withUnsafeBytes { (secretKey) throws(CryptoError) in
      let publicKey = key.publicKey
      return try SecretBytes(count: sealed.count - overhead) { (target) throws(CryptoError) in
        guard open(sealed, publicKey, secretKey, into: target) else {
          throw .authenticationFailed
        }
      }
    }
  }

  private static func seal(
    _ plaintext: UnsafeRawBufferPointer, _ recipient: BoxPublicKey,
    _ ephemeral: borrowing BoxSeed
  ) -> [UInt8]? {
    let sender = BoxKey(seed: ephemeral)
    var isValid = false
    let nonce = nonce(from: sender.publicKey, to: recipient)
    var sealed = sender.publicKey.bytes
    sealed.append(contentsOf: repeatElement(0, count: plaintext.count + SharedBox.overhead))
    sealed.withUnsafeMutableBytes { sealed in
      let target = UnsafeMutableRawBufferPointer(rebasing: sealed[BoxPublicKey.byteCount...])
      nonce.withUnsafeBytes { nonce in
        recipient.withUnsafeBytes { recipient in
          sender.withUnsafeBytes { sender in
            isValid =
              crypto_box_easy(
                target.bytePointer, plaintext.bytePointer, UInt64(plaintext.count),
                nonce.bytePointer, recipient.bytePointer, sender.bytePointer) == 0
          }
        }
      }
    }
    return isValid ? sealed : nil
  }

  private static func open(
    _ sealed: [UInt8], _ publicKey: BoxPublicKey, _ secretKey: UnsafeRawBufferPointer,
    into target: UnsafeMutableRawBufferPointer
  ) -> Bool {
    publicKey.withUnsafeBytes { publicKey in
      crypto_box_seal_open(
        target.bytePointer, sealed, UInt64(sealed.count), publicKey.bytePointer,
        secretKey.bytePointer) == 0
    }
  }

  private static func nonce(from sender: BoxPublicKey, to recipient: BoxPublicKey) -> BoxNonce {
    let input = sender.bytes + recipient.bytes
    return BoxNonce {
      _ = crypto_generichash(
        $0.bytePointer, $0.count, input, UInt64(input.count), nil, 0)
    }
  }
}
