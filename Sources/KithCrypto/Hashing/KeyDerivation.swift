import CSodium

/// Subkeys of a master secret (`crypto_kdf_derive_from_key`).
package enum KeyDerivation {
  /// Returns a 32-byte subkey, which reveals nothing about its master or other subkeys.
  ///
  /// The context is eight ASCII bytes for the purpose, such as `KithEpo1`.
  package static func derive<Key: SecretKey & ~Copyable, Master: SecretKey & ~Copyable>(
    _ subkey: UInt64, context: StaticString, from master: borrowing Master
  ) -> Key {
    precondition(
      context.utf8CodeUnitCount == Int(crypto_kdf_CONTEXTBYTES),
      "a context has 8 bytes")
    return Key(
      unchecked: master.withUnsafeBytes { master in
        SecretBytes(count: secretKeyByteCount) { target in
          context.utf8Start.withMemoryRebound(to: CChar.self, capacity: 8) { context in
            _ = crypto_kdf_derive_from_key(
              target.bytePointer, target.count, subkey, context, master.bytePointer)
          }
        }
      })
  }
}
