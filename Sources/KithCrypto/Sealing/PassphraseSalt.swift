/// The random salt that a passphrase is stretched with; kept beside what it seals.
public struct PassphraseSalt: FixedBytes {
  /// The bytes.
  public let storage: Bytes16

  /// The value with these bytes.
  @inlinable public init(storage: Bytes16) { self.storage = storage }
}
