/// The random salt of a passphrase, stored with the sealed data.
package struct PassphraseSalt: FixedBytes {
  package let storage: Bytes16

  @inlinable package init(storage: Bytes16) { self.storage = storage }
}
