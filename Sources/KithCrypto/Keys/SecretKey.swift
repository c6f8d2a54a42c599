/// A secret of 32 bytes with a purpose, kept in guarded memory.
///
/// The types differ so that a key is never used for another's purpose.
public protocol SecretKey: ~Copyable, Sendable {
  /// Wraps 32 bytes whose number has been checked; use `init(_:)` outside this module.
  init(unchecked secret: consuming SecretBytes)

  /// Lends the bytes for the time of `body`; the pointer must not outlive it.
  borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R
}

/// How many bytes every secret key has.
public let secretKeyByteCount = 32

extension SecretKey where Self: ~Copyable {
  /// The key with these bytes; throws `wrongLength` unless there are 32.
  public init(_ secret: consuming SecretBytes) throws(CryptoError) {
    let actual = secret.count
    guard actual == secretKeyByteCount else {
      throw .wrongLength(expected: secretKeyByteCount, actual: actual)
    }
    self.init(unchecked: secret)
  }

  /// Copies 32 bytes in and zeroes the source, also when it throws `wrongLength`.
  public init(zeroing bytes: inout [UInt8]) throws(CryptoError) {
    try self.init(SecretBytes(zeroing: &bytes))
  }

  /// Draws a key from `entropy`.
  public init(random entropy: inout some Entropy) {
    self.init(unchecked: SecretBytes(random: secretKeyByteCount, using: &entropy))
  }

  /// Another key with the same bytes, in memory of its own.
  public borrowing func copy() -> Self {
    Self(
      unchecked: withUnsafeBytes { source in
        SecretBytes(count: source.count) { $0.copyMemory(from: source) }
      })
  }

  /// Whether two keys are the same, in constant time.
  public borrowing func isSame(as other: borrowing Self) -> Bool {
    withUnsafeBytes { left in
      other.withUnsafeBytes { right in Sodium.equal(left, right) }
    }
  }
}
