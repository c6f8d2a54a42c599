/// A BLAKE2b digest of 32 bytes.
public struct Digest256: FixedBytes {
  /// The bytes.
  public let storage: Bytes32

  /// Makes the value with these bytes.
  @inlinable public init(storage: Bytes32) { self.storage = storage }
}

/// A BLAKE2b digest of 16 bytes.
public struct Digest128: FixedBytes {
  /// The bytes.
  public let storage: Bytes16

  /// Makes the value with these bytes.
  @inlinable public init(storage: Bytes16) { self.storage = storage }
}
