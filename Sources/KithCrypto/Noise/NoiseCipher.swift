import CSodium

/// ChaChaPoly as Noise uses it (section 12.3), in place. The nonce is four zero bytes, then the
/// little-endian counter.
enum NoiseCipher {
  /// Encrypts all but the last 16 bytes, which get the tag.
  static func encrypt(
    _ message: UnsafeMutableRawBufferPointer, key: UnsafeRawBufferPointer, nonce: UInt64,
    authenticating additional: UnsafeRawBufferPointer
  ) {
    let plaintextCount = message.count - CipherState.overhead
    withNonce(nonce) { nonce in
      _ = crypto_aead_chacha20poly1305_ietf_encrypt(
        message.bytePointer, nil, message.bytePointer, UInt64(plaintextCount),
        additional.bytePointer, UInt64(additional.count), nil, nonce.bytePointer, key.bytePointer)
    }
  }

  /// Decrypts only if the tag at the end is right.
  static func decrypt(
    _ message: UnsafeMutableRawBufferPointer, key: UnsafeRawBufferPointer, nonce: UInt64,
    authenticating additional: UnsafeRawBufferPointer
  ) -> Bool {
    withNonce(nonce) { nonce in
      crypto_aead_chacha20poly1305_ietf_decrypt(
        message.bytePointer, nil, nil, message.bytePointer, UInt64(message.count),
        additional.bytePointer, UInt64(additional.count), nonce.bytePointer, key.bytePointer) == 0
    }
  }

  private static func withNonce<R>(_ counter: UInt64, _ body: (UnsafeRawBufferPointer) -> R) -> R {
    var nonce: (UInt32, UInt32, UInt32) = (
      0, UInt32(truncatingIfNeeded: counter).littleEndian,
      UInt32(truncatingIfNeeded: counter >> 32).littleEndian
    )
    return withUnsafeBytes(of: &nonce) { body($0) }
  }
}
