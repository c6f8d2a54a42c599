import CSodium

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

/// BLAKE2b, unkeyed and keyed (`crypto_generichash`); each call takes O(*n*) in its bytes.
package enum Blake2b {
  /// Digests the parts without separators: encode their borders if they matter.
  package static func digest256(_ parts: [UInt8]...) -> Digest256 {
    var hasher = Hasher()
    for part in parts { hasher.update(part) }
    return hasher.digest256()
  }

  package static func digest256(_ bytes: ArraySlice<UInt8>) -> Digest256 {
    var hasher = Hasher()
    hasher.update(bytes)
    return hasher.digest256()
  }

  package static func digest128(_ bytes: [UInt8]) -> Digest128 {
    Digest128 {
      _ = crypto_generichash($0.bytePointer, $0.count, bytes, UInt64(bytes.count), nil, 0)
    }
  }

  package static func digest128(_ bytes: ArraySlice<UInt8>) -> Digest128 {
    bytes.withUnsafeBytes { bytes in
      Digest128 {
        _ = crypto_generichash(
          $0.bytePointer, $0.count, bytes.bytePointer, UInt64(bytes.count), nil, 0)
      }
    }
  }

  /// Without the key, the digest reveals nothing.
  package static func keyed128<Key: SecretKey & ~Copyable>(
    _ message: [UInt8], key: borrowing Key
  ) -> Digest128 {
    key.withUnsafeBytes { key in
      Digest128 {
        _ = crypto_generichash(
          $0.bytePointer, $0.count, message, UInt64(message.count), key.bytePointer, key.count)
      }
    }
  }
}

extension Blake2b {
  /// Computes BLAKE2b-256 in pieces; each update takes O(*n*) and copies no bytes.
  package struct Hasher: Sendable {
    private var state = kith_blake2b_state()

    package init() {
      Sodium.start()
      kith_blake2b_init(&state, Digest256.byteCount)
    }

    package mutating func update(_ bytes: [UInt8]) {
      kith_blake2b_update(&state, bytes, UInt64(bytes.count))
    }

    package mutating func update(_ bytes: ArraySlice<UInt8>) {
      bytes.withUnsafeBytes { update($0) }
    }

    package mutating func update(_ value: some FixedBytes) {
      value.withUnsafeBytes { update($0) }
    }

    package mutating func update(_ buffer: UnsafeRawBufferPointer) {
      kith_blake2b_update(&state, buffer.bytePointer, UInt64(buffer.count))
    }

    /// Returns the digest of all bytes so far; the hasher can take more.
    package func digest256() -> Digest256 {
      var state = state
      return Digest256 { kith_blake2b_final(&state, $0.bytePointer, $0.count) }
    }
  }
}

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
