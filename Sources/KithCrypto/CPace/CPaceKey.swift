import CSodium

/// The common key of two sides with the same password.
package struct CPaceKey: ~Copyable, Sendable {
  static let byteCount = 64
  private let secret: SecretBytes

  init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  /// The pointer is valid only during the call.
  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }

  /// Returns a proof of having the key: BLAKE2b-256 of the message under it, in O(*n*).
  package borrowing func proof(of message: [UInt8]) -> Digest256 {
    secret.withUnsafeBytes { key in Digest256 { Self.digest(message, under: key, into: $0) } }
  }

  /// Derives a key: BLAKE2b-256 of the message under this key. The message must differ from those
  /// of all proofs.
  package borrowing func derive<Key: SecretKey & ~Copyable>(
    _ message: [UInt8], as type: Key.Type = Key.self
  ) -> Key {
    Key(
      unchecked: secret.withUnsafeBytes { key in
        SecretBytes(count: secretKeyByteCount) { Self.digest(message, under: key, into: $0) }
      })
  }

  private static func digest(
    _ message: [UInt8], under key: UnsafeRawBufferPointer,
    into target: UnsafeMutableRawBufferPointer
  ) {
    _ = crypto_generichash(
      target.bytePointer, target.count, message, UInt64(message.count), key.bytePointer, key.count)
  }
}
