import CSodium

/// What stretching a passphrase costs. Read from files, so bounded on the way in.
public struct Argon2Parameters: Hashable, Sendable {
  /// How many passes are accepted.
  public static let allowedOperations = 1...16

  /// How much memory is accepted: 8 KiB, the least that Argon2id works with, to 1 GiB.
  public static let allowedMemoryBytes = 8_192...1_073_741_824

  /// 2 passes over 64 MiB: for a person who waits.
  public static let interactive = Argon2Parameters(
    unchecked: Int(crypto_pwhash_argon2id_OPSLIMIT_INTERACTIVE),
    Int(crypto_pwhash_argon2id_MEMLIMIT_INTERACTIVE))

  /// 3 passes over 256 MiB: for what is opened once at start.
  public static let moderate = Argon2Parameters(
    unchecked: Int(crypto_pwhash_argon2id_OPSLIMIT_MODERATE),
    Int(crypto_pwhash_argon2id_MEMLIMIT_MODERATE))

  /// The number of passes over the memory.
  public let operations: Int

  /// The memory that is filled, in bytes.
  public let memoryBytes: Int

  /// Checks both numbers; throws `parameterOutOfBounds` with what is allowed.
  public init(operations: Int, memoryBytes: Int) throws(CryptoError) {
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

/// What a person remembers or a file holds: in guarded memory, zeroed when the last reference goes.
///
/// Several who need it share one, so that its bytes are in one place only.
public final class Passphrase: Sendable {
  /// The most bytes of one: what is longer is no passphrase, but a wrong file.
  public static let maximumBytes = 1_024

  private let bytes: SecretBytes

  /// Takes over the bytes, and zeroes the source, as far as `SecretBytes` can.
  public init(zeroing bytes: inout [UInt8]) {
    self.bytes = SecretBytes(zeroing: &bytes)
  }

  /// Takes over the bytes.
  public init(_ bytes: consuming SecretBytes) {
    self.bytes = bytes
  }

  /// Whether both have the same bytes. The time taken tells nothing but their numbers.
  public func isSame(as other: Passphrase) -> Bool {
    bytes.withUnsafeBytes { one in
      other.bytes.withUnsafeBytes { other in
        one.count == other.count
          && sodium_memcmp(one.bytePointer, other.bytePointer, one.count) == 0
      }
    }
  }

  /// Stretches it to the key that it stands for, by Argon2id version 1.3 (`crypto_pwhash`).
  ///
  /// It blocks for as long as the parameters make it: do not call it on an event loop.
  ///
  /// - Throws: `outOfMemory` if the system cannot give the memory that the parameters ask for.
  public func derive(
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
