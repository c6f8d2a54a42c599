import CSodium

/// The cost of stretching a passphrase, bounded because it is read from files.
package struct Argon2Parameters: Hashable, Sendable {
  package static let allowedOperations = 1...16

  /// 8 KiB, the minimum of Argon2id, to 1 GiB.
  package static let allowedMemoryBytes = 8_192...1_073_741_824

  /// 3 passes over 256 MiB, for data that is opened once at start.
  package static let moderate = Argon2Parameters(
    unchecked: Int(crypto_pwhash_argon2id_OPSLIMIT_MODERATE),
    Int(crypto_pwhash_argon2id_MEMLIMIT_MODERATE))

  /// Passes over the memory.
  package let operations: Int

  package let memoryBytes: Int

  package init(operations: Int, memoryBytes: Int) throws(CryptoError) {
    guard Self.allowedOperations.contains(operations) else {
      throw .parameterOutOfBounds(
        name: "operations", allowed: Self.allowedOperations, actual: operations)
    }
    guard Self.allowedMemoryBytes.contains(memoryBytes) else {
      throw .parameterOutOfBounds(
        name: "memoryBytes", allowed: Self.allowedMemoryBytes, actual: memoryBytes)
    }
    self.init(unchecked: operations, memoryBytes)
  }

  private init(unchecked operations: Int, _ memoryBytes: Int) {
    self.operations = operations
    self.memoryBytes = memoryBytes
  }
}

/// A passphrase from a person or a file, in guarded memory that is zeroed after its last use.
///
/// All users share one object, so that only one copy exists.
public final class Passphrase: Sendable {
  /// A longer text is a wrong file.
  package static let maximumBytes = 1_024

  private let bytes: SecretBytes

  /// Takes the bytes, and zeroes the source's storage; an earlier copy of the source keeps its
  /// bytes.
  public init(zeroing bytes: inout [UInt8]) {
    self.bytes = SecretBytes(zeroing: &bytes)
  }

  package init(_ bytes: consuming SecretBytes) {
    self.bytes = bytes
  }

  /// Takes a time that reveals only the lengths.
  package func isSame(as other: Passphrase) -> Bool {
    bytes.withUnsafeBytes { one in
      other.bytes.withUnsafeBytes { other in Sodium.equal(one, other) }
    }
  }

  /// Derives the storage key by Argon2id version 1.3 (`crypto_pwhash`).
  ///
  /// Blocks as long as the parameters decide: do not call it on an event loop.
  ///
  /// - Throws: `outOfMemory` if the system lacks the required memory.
  package func derive(
    salt: PassphraseSalt, parameters: Argon2Parameters
  ) throws(CryptoError) -> StorageKey {
    var isDone = false
    let key = SecretBytes(count: secretKeyByteCount) { key in
      bytes.withUnsafeBytes { passphrase in
        passphrase.bytePointer.withMemoryRebound(to: CChar.self, capacity: passphrase.count) {
          text in
          salt.withUnsafeBytes { salt in
            isDone =
              crypto_pwhash_argon2id(
                key.bytePointer, UInt64(key.count), text, UInt64(passphrase.count),
                salt.bytePointer, UInt64(parameters.operations), parameters.memoryBytes,
                crypto_pwhash_argon2id_ALG_ARGON2ID13) == 0
          }
        }
      }
    }
    guard isDone else { throw .outOfMemory }
    return StorageKey(unchecked: key)
  }
}

/// The random salt of a passphrase, stored with the sealed data.
package struct PassphraseSalt: FixedBytes {
  package let storage: Bytes16

  @inlinable package init(storage: Bytes16) { self.storage = storage }
}
