/// The part of a box nonce that the boxes of one change set share, drawn at random.
package struct NoncePrefix: FixedBytes {
  /// The bytes.
  package let storage: Bytes20

  /// Makes the value with these bytes.
  @inlinable package init(storage: Bytes20) { self.storage = storage }
}

/// A nonce of 24 bytes for boxes: never used twice under one pair of keys.
package struct BoxNonce: FixedBytes {
  /// The bytes.
  package let storage: Bytes24

  /// Makes the value with these bytes.
  @inlinable package init(storage: Bytes24) { self.storage = storage }

  /// Makes a nonce of the prefix, then the index as a 32-bit big-endian number.
  package init(prefix: NoncePrefix, index: UInt32) {
    self.init { (buffer) in
      prefix.withUnsafeBytes { buffer.copyMemory(from: $0) }
      buffer.storeBytes(of: index.bigEndian, toByteOffset: NoncePrefix.byteCount, as: UInt32.self)
    }
  }
}
