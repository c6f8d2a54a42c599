import CSodium

/// One direction of a transport (Noise, section 5.1): ChaCha20-Poly1305 under a key and a counter
/// of messages.
package struct CipherState: ~Copyable, Sendable {
  package static let overhead = Int(crypto_aead_chacha20poly1305_ietf_ABYTES)

  private let key: SecretBytes

  /// `UInt64.max` is never used.
  package private(set) var nextNonce: UInt64

  package init(key: consuming SecretBytes, nextNonce: UInt64 = 0) {
    precondition(key.count == secretKeyByteCount, "a cipher key has 32 bytes")
    self.key = key
    self.nextNonce = nextNonce
  }

  /// Encrypts and authenticates, in O(*n*). Throws `nonceExhausted`, or `messageTooLong` if the
  /// result would exceed 65,535 bytes.
  package mutating func encrypt(
    _ plaintext: [UInt8], authenticating additional: [UInt8] = []
  ) throws(NoiseError) -> [UInt8] {
    var message = plaintext
    message.append(contentsOf: repeatElement(0, count: Self.overhead))
    try encryptInPlace(&message, authenticating: additional)
    return message
  }

  /// Decrypts a message in O(*n*). If it throws, the counter does not change.
  package mutating func decrypt(
    _ message: [UInt8], authenticating additional: [UInt8] = []
  ) throws(NoiseError) -> [UInt8] {
    var plaintext = message
    let count = try decryptInPlace(&plaintext, authenticating: additional)
    plaintext.removeLast(plaintext.count - count)
    return plaintext
  }

  /// Encrypts all but the last 16 bytes, which get the tag: O(*n*), without allocating if the array
  /// is not shared.
  package mutating func encryptInPlace(
    _ message: inout [UInt8], authenticating additional: [UInt8] = []
  ) throws(NoiseError) {
    let nonce = try checkedNonce(for: message.count)
    message.withUnsafeMutableBytes { encrypt($0, nonce, additional) }
    nextNonce += 1
  }

  /// Encrypts all but the last 16 bytes, which get the tag: O(*n*), without allocating.
  package mutating func encryptInPlace(
    _ message: UnsafeMutableRawBufferPointer
  ) throws(NoiseError) {
    let nonce = try checkedNonce(for: message.count)
    encrypt(message, nonce, [])
    nextNonce += 1
  }

  /// Returns the number of plaintext bytes at the front: O(*n*), without allocating if the array is
  /// not shared.
  package mutating func decryptInPlace(
    _ message: inout [UInt8], authenticating additional: [UInt8] = []
  ) throws(NoiseError) -> Int {
    let nonce = try checkedNonce(for: message.count)
    guard message.withUnsafeMutableBytes({ decrypt($0, nonce, additional) }) else {
      throw .authenticationFailed
    }
    nextNonce += 1
    return message.count - Self.overhead
  }

  /// Returns the number of plaintext bytes at the front: O(*n*), without allocating.
  package mutating func decryptInPlace(
    _ message: UnsafeMutableRawBufferPointer
  ) throws(NoiseError) -> Int {
    let nonce = try checkedNonce(for: message.count)
    guard decrypt(message, nonce, []) else { throw .authenticationFailed }
    nextNonce += 1
    return message.count - Self.overhead
  }

  private borrowing func checkedNonce(for count: Int) throws(NoiseError) -> UInt64 {
    guard count <= noiseMessageByteLimit else { throw .messageTooLong }
    guard count >= Self.overhead else { throw .messageTooShort }
    guard nextNonce != .max else { throw .nonceExhausted }
    return nextNonce
  }

  private borrowing func encrypt(
    _ message: UnsafeMutableRawBufferPointer, _ nonce: UInt64, _ additional: [UInt8]
  ) {
    key.withUnsafeBytes { key in
      additional.withUnsafeBytes { additional in
        NoiseCipher.encrypt(message, key: key, nonce: nonce, authenticating: additional)
      }
    }
  }

  private borrowing func decrypt(
    _ message: UnsafeMutableRawBufferPointer, _ nonce: UInt64, _ additional: [UInt8]
  ) -> Bool {
    key.withUnsafeBytes { key in
      additional.withUnsafeBytes { additional in
        NoiseCipher.decrypt(message, key: key, nonce: nonce, authenticating: additional)
      }
    }
  }
}

/// The longest Noise message, handshake or transport.
package let noiseMessageByteLimit = 65_535

package struct TransportPair: ~Copyable, Sendable {
  package var send: CipherState
  package var receive: CipherState

  /// Passes the two directions to separate owners.
  package consuming func take(
    _ body: (consuming CipherState, consuming CipherState) -> Void
  ) {
    body(send, receive)
  }
}

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
