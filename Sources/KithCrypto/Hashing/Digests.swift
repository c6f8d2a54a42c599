/// A BLAKE2b digest of 32 bytes.
package struct Digest256: FixedBytes {
  package let storage: Bytes32

  @inlinable package init(storage: Bytes32) { self.storage = storage }
}

/// A BLAKE2b digest of 16 bytes.
package struct Digest128: FixedBytes {
  package let storage: Bytes16

  @inlinable package init(storage: Bytes16) { self.storage = storage }
}
