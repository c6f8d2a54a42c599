/// A secret of 32 bytes with a purpose, kept in guarded memory.
///
/// The types differ so that a key is never used for another's purpose.
package protocol SecretKey: ~Copyable, Sendable {
  /// Wraps 32 bytes; the caller has checked the count. Use `init(_:)` outside this module.
  init(unchecked secret: consuming SecretBytes)

  /// Calls `body` with the bytes. The pointer is valid only during the call.
  borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R
}

/// The number of bytes of every secret key.
package let secretKeyByteCount = 32

extension SecretKey where Self: ~Copyable {
  /// Makes the key with these bytes; throws `wrongLength` unless there are 32.
  package init(_ secret: consuming SecretBytes) throws(CryptoError) {
    let actual = secret.count
    guard actual == secretKeyByteCount else {
      throw .wrongLength(expected: secretKeyByteCount, actual: actual)
    }
    self.init(unchecked: secret)
  }

  /// Copies 32 bytes and zeroes the source, even if it throws `wrongLength`.
  package init(zeroing bytes: inout [UInt8]) throws(CryptoError) {
    try self.init(SecretBytes(zeroing: &bytes))
  }

  /// Draws a key from `entropy`.
  package init(random entropy: inout some Entropy) {
    self.init(unchecked: SecretBytes(random: secretKeyByteCount, using: &entropy))
  }

  /// Returns another key with the same bytes, in its own memory.
  package borrowing func copy() -> Self {
    Self(
      unchecked: withUnsafeBytes { source in
        SecretBytes(count: source.count) { $0.copyMemory(from: source) }
      })
  }

  /// Returns whether two keys are equal, in constant time.
  package borrowing func isSame(as other: borrowing Self) -> Bool {
    withUnsafeBytes { left in
      other.withUnsafeBytes { right in Sodium.equal(left, right) }
    }
  }
}
