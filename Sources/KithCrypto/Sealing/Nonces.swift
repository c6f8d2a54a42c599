/// The random part of a box nonce that the boxes of one change set share.
package struct NoncePrefix: FixedBytes {
  package let storage: Bytes20

  @inlinable package init(storage: Bytes20) { self.storage = storage }
}

/// A nonce for boxes: never used twice under one pair of keys.
package struct BoxNonce: FixedBytes {
  package let storage: Bytes24

  @inlinable package init(storage: Bytes24) { self.storage = storage }

  /// The prefix, then the index as 32-bit big-endian.
  package init(prefix: NoncePrefix, index: UInt32) {
    self.init { (buffer) in
      prefix.withUnsafeBytes { buffer.copyMemory(from: $0) }
      buffer.storeBytes(of: index.bigEndian, toByteOffset: NoncePrefix.byteCount, as: UInt32.self)
    }
  }
}
