/// The part of a box nonce that the boxes of one change set share, drawn at random.
public struct NoncePrefix: FixedBytes {
  /// The bytes.
  public let storage: Bytes20

  /// Makes the value with these bytes.
  @inlinable public init(storage: Bytes20) { self.storage = storage }
}

/// A nonce of 24 bytes for boxes: never used twice under one pair of keys.
public struct BoxNonce: FixedBytes {
  /// The bytes.
  public let storage: Bytes24

  /// Makes the value with these bytes.
  @inlinable public init(storage: Bytes24) { self.storage = storage }

  /// Makes a nonce of the prefix, then the index as a 32-bit big-endian number.
  public init(prefix: NoncePrefix, index: UInt32) {
    self.init { (buffer) in
      prefix.withUnsafeBytes { buffer.copyMemory(from: $0) }
      buffer.storeBytes(of: index.bigEndian, toByteOffset: NoncePrefix.byteCount, as: UInt32.self)
    }
  }
}
