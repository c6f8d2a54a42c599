/// A secret of 32 bytes in guarded memory; one type for each purpose, so that no key serves
/// another.
package protocol SecretKey: ~Copyable, Sendable {
  /// Wraps 32 bytes; the caller has checked the count. Outside this module, use `init(_:)`.
  init(unchecked secret: consuming SecretBytes)

  /// The pointer is valid only during the call.
  borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R
}

package let secretKeyByteCount = 32

extension SecretKey where Self: ~Copyable {
  /// Throws `wrongLength` unless there are 32 bytes.
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

  package init(random entropy: inout some Entropy) {
    self.init(unchecked: SecretBytes(random: secretKeyByteCount, using: &entropy))
  }

  package borrowing func copy() -> Self {
    Self(
      unchecked: withUnsafeBytes { source in
        SecretBytes(count: source.count) { $0.copyMemory(from: source) }
      })
  }

  /// Compares in constant time.
  package borrowing func isSame(as other: borrowing Self) -> Bool {
    withUnsafeBytes { left in
      other.withUnsafeBytes { right in Sodium.equal(left, right) }
    }
  }
}
