/// The random salt of a passphrase, kept beside the sealed data.
package struct PassphraseSalt: FixedBytes {
  /// The bytes.
  package let storage: Bytes16

  /// Makes the value with these bytes.
  @inlinable package init(storage: Bytes16) { self.storage = storage }
}
