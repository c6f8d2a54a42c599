import CSodium

/// One direction of an encrypted transport (Noise, section 5.1): ChaCha20-Poly1305 under a key
/// and a counter that rises with each message.
package struct CipherState: ~Copyable, Sendable {
  /// The number of bytes that encryption adds to the plaintext.
  package static let overhead = Int(crypto_aead_chacha20poly1305_ietf_ABYTES)

  private let key: SecretBytes

  /// The counter of the next message; the largest number is never used.
  package private(set) var nextNonce: UInt64

  /// Makes a cipher with a key of 32 bytes; the caller has checked the count.
  package init(key: consuming SecretBytes, nextNonce: UInt64 = 0) {
    precondition(key.count == secretKeyByteCount, "a cipher key has 32 bytes")
    self.key = key
    self.nextNonce = nextNonce
  }

  /// Encrypts a message, and authenticates `additional` with it.
  ///
  /// Throws `messageTooLong` if the result would exceed 65,535 bytes, and `nonceExhausted`.
  /// - Complexity: O(*n*).
  package mutating func encrypt(
    _ plaintext: [UInt8], authenticating additional: [UInt8] = []
  ) throws(NoiseError) -> [UInt8] {
    var message = plaintext
    message.append(contentsOf: repeatElement(0, count: Self.overhead))
    try encryptInPlace(&message, authenticating: additional)
    return message
  }

  /// Decrypts a message. If it throws, the counter does not change.
  ///
  /// - Complexity: O(*n*).
  package mutating func decrypt(
    _ message: [UInt8], authenticating additional: [UInt8] = []
  ) throws(NoiseError) -> [UInt8] {
    var plaintext = message
    let count = try decryptInPlace(&plaintext, authenticating: additional)
    plaintext.removeLast(plaintext.count - count)
    return plaintext
  }

  /// Encrypts in place: the plaintext is all but the last 16 bytes, which get the tag.
  ///
  /// - Complexity: O(*n*), without allocating if the array is not shared.
  package mutating func encryptInPlace(
    _ message: inout [UInt8], authenticating additional: [UInt8] = []
  ) throws(NoiseError) {
    let nonce = try checkedNonce(for: message.count)
    message.withUnsafeMutableBytes { encrypt($0, nonce, additional) }
    nextNonce += 1
  }

  /// Encrypts in place: the plaintext is all but the last 16 bytes, which get the tag.
  ///
  /// - Complexity: O(*n*), without allocating.
  package mutating func encryptInPlace(
    _ message: UnsafeMutableRawBufferPointer
  ) throws(NoiseError) {
    let nonce = try checkedNonce(for: message.count)
    encrypt(message, nonce, [])
    nextNonce += 1
  }

  /// Decrypts in place, and returns the number of plaintext bytes at the front.
  ///
  /// - Complexity: O(*n*), without allocating if the array is not shared.
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

  /// Decrypts in place, and returns the number of plaintext bytes at the front.
  ///
  /// - Complexity: O(*n*), without allocating.
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

/// The longest Noise message, handshake or transport, in bytes.
package let noiseMessageByteLimit = 65_535

/// The two directions of a transport after a finished handshake.
package struct TransportPair: ~Copyable, Sendable {
  /// Encrypts the messages that this side sends.
  package var send: CipherState
  /// Decrypts the messages that this side receives.
  package var receive: CipherState

  /// Passes the two directions to separate owners.
  package consuming func take(
    _ body: (consuming CipherState, consuming CipherState) -> Void
  ) {
    body(send, receive)
  }
}
