/// The random salt of a passphrase, kept beside the sealed data.
public struct PassphraseSalt: FixedBytes {
  /// The bytes.
  public let storage: Bytes16

  /// Makes the value with these bytes.
  @inlinable public init(storage: Bytes16) { self.storage = storage }
}
