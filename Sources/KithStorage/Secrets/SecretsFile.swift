import Glibc
import KithCore
import KithCrypto

/// The file `secrets`: a device's ``DeviceSecrets``, mode 0600, plain or under a passphrase.
///
/// Numbers are big-endian.
///
/// | bytes | content |
/// | --- | --- |
/// | 8 | `KithSecr` |
/// | 1 | format: 1 |
/// | 1 | protection: 0 plain, 1 passphrase |
/// | 4, 8, 16 | with a passphrase only: Argon2id passes, memory in bytes, salt |
/// | 128, or 168 | the secrets (signing, box, transport, storage); with a passphrase sealed by
/// `crypto_secretbox_easy`, nonce first |
/// | 32 | BLAKE2b-256 of all bytes before: a damaged file differs from a wrong passphrase |
///
/// Passes and memory are limited, so that a file cannot exhaust the machine.
struct SecretsFile {
  private static let magic = Array("KithSecr".utf8)
  private static let format: UInt8 = 1
  private static let digestByteCount = Digest256.byteCount
  private static let parameterByteCount = 4 + 8 + PassphraseSalt.byteCount

  let path: String

  /// Durable; the caller renames `temporary`, so that the file is complete or absent.
  func write(
    _ secrets: borrowing DeviceSecrets, passphrase: Passphrase?, stretching: Argon2Parameters,
    temporary: String
  ) throws(StorageError) {
    var head = Self.magic + [Self.format, passphrase == nil ? 0 : 1]
    guard let passphrase else { return try write(head, secrets.joined(), to: temporary) }
    var random = SystemRandom()
    let salt = random.draw(PassphraseSalt.self)
    withUnsafeBytes(of: UInt32(stretching.operations).bigEndian) { head.append(contentsOf: $0) }
    head += UInt64(stretching.memoryBytes).row + salt.bytes
    let key = try derive(passphrase, salt, stretching)
    var sealed = key.seal(secret: secrets.joined(), nonce: random.draw(BoxNonce.self))
    try write(head, SecretBytes(zeroing: &sealed), to: temporary)
  }

  private func write(
    _ head: [UInt8], _ body: borrowing SecretBytes, to temporary: String
  ) throws(StorageError) {
    let content = body.withUnsafeBytes { body in
      SecretBytes(count: head.count + body.count + Self.digestByteCount) { target in
        let end = head.count + body.count
        target.copyBytes(from: head)
        UnsafeMutableRawBufferPointer(rebasing: target[head.count...]).copyMemory(from: body)
        let digest = Self.digest(UnsafeRawBufferPointer(rebasing: target[..<end]))
        digest.withUnsafeBytes {
          UnsafeMutableRawBufferPointer(rebasing: target[end...]).copyMemory(from: $0)
        }
      }
    }
    try content.withUnsafeBytes { bytes throws(StorageError) in
      try Files.writeDurably(bytes, to: temporary)
    }
  }

  /// Without checking the rest of the file.
  func isUnderPassphrase() throws(StorageError) -> Bool {
    try Files.checkPrivate(path, directory: false)
    let head = try Files.head(path, count: Self.magic.count + 2)
    return head.starts(with: Self.magic) && head.last == 1
  }

  /// Give a passphrase if, and only if, the file has one.
  func read(passphrase: Passphrase?) throws(StorageError) -> DeviceSecrets {
    try Files.checkPrivate(path, directory: false)
    let content = try Files.read(path, atMost: 4_096)
    let headCount = Self.magic.count + 2
    guard content.count > headCount + Self.digestByteCount else { throw damaged("cut short") }
    let (head, isWhole) = content.withUnsafeBytes { bytes in
      let end = bytes.count - Self.digestByteCount
      let digest = Self.digest(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
      return (Array(bytes[..<headCount]), digest.bytes.elementsEqual(bytes[end...]))
    }
    guard head.starts(with: Self.magic) else { throw damaged("not a secrets file") }
    guard isWhole else { throw damaged("damaged") }
    let format = head[Self.magic.count]
    guard format == Self.format else {
      throw .newerSchema(path, found: Int(format), known: Int(Self.format))
    }
    switch head[Self.magic.count + 1] {
    case 0: return try readPlain(content, from: headCount)
    case 1: return try readSealed(content, from: headCount, passphrase)
    default: throw damaged("protected in an unknown way")
    }
  }

  private func readPlain(
    _ content: borrowing SecretBytes, from start: Int
  ) throws(StorageError) -> DeviceSecrets {
    guard content.count == start + DeviceSecrets.byteCount + Self.digestByteCount else {
      throw damaged("of a wrong length")
    }
    return DeviceSecrets(joined: content.copy(start..<(start + DeviceSecrets.byteCount)))
  }

  private func readSealed(
    _ content: borrowing SecretBytes, from start: Int, _ passphrase: Passphrase?
  ) throws(StorageError) -> DeviceSecrets {
    let sealedCount = DeviceSecrets.byteCount + StorageKey.overhead
    let sealedStart = start + Self.parameterByteCount
    guard content.count == sealedStart + sealedCount + Self.digestByteCount else {
      throw damaged("of a wrong length")
    }
    guard let passphrase else {
      throw StorageError(
        code: .passphrase, path: path, message: "is under a passphrase, and none was given; give it"
      )
    }
    let (parameters, sealed) = content.withUnsafeBytes { bytes in
      (Array(bytes[start..<sealedStart]), Array(bytes[sealedStart..<(sealedStart + sealedCount)]))
    }
    let operations = parameters[0..<4].reduce(0) { $0 << 8 | Int($1) }
    let memoryBytes = UInt64(row: parameters[4..<12]) ?? 0
    guard let salt = try? PassphraseSalt(parameters[12...]),
      let stretching = try? Argon2Parameters(
        operations: operations, memoryBytes: Int(clamping: memoryBytes))
    else { throw damaged("asking for more passes or memory than is accepted") }
    let key = try derive(passphrase, salt, stretching)
    do {
      return DeviceSecrets(joined: try key.openSecret(sealed))
    } catch {
      throw StorageError(
        code: .passphrase, path: path, message: "the passphrase is wrong; try again")
    }
  }

  private func derive(
    _ passphrase: Passphrase, _ salt: PassphraseSalt, _ stretching: Argon2Parameters
  ) throws(StorageError) -> StorageKey {
    do {
      return try passphrase.derive(salt: salt, parameters: stretching)
    } catch .outOfMemory {
      throw StorageError(
        code: .inputOutput, path: path,
        message: "not enough memory for the passphrase: \(stretching.memoryBytes) bytes needed")
    } catch {
      throw StorageError(
        code: .passphrase, path: path, message: "the passphrase cannot be used (\(error))")
    }
  }

  private func damaged(_ how: String) -> StorageError { .damaged(path, "the file is \(how)") }

  private static func digest(_ bytes: UnsafeRawBufferPointer) -> Digest256 {
    var hasher = Blake2b.Hasher()
    hasher.update(bytes)
    return hasher.digest256()
  }
}

/// An unlinked file, held open to be overwritten.
///
/// That reaches the blocks on file systems that write in place (ext4, xfs). It misses those of
/// copy-on-write systems (btrfs, zfs), and blocks that the disk has remapped.
struct FileRemains: ~Copyable {
  private let descriptor: Int32

  /// Holds the file open, if it can be opened. A private file that its owner may only read is made
  /// writable.
  init(_ path: String) {
    let flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW
    let first = open(path, flags)
    guard first < 0, errno == EACCES,
      (try? Files.checkPrivate(path, directory: false)) != nil, chmod(path, 0o600) == 0
    else {
      descriptor = first
      return
    }
    descriptor = open(path, flags)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Only if the file has no other name, which may be a person's backup.
  func overwrite() {
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_nlink == 0 else { return }
    let zeros = [UInt8](repeating: 0, count: Int(clamping: status.st_size))
    _ = pwrite(descriptor, zeros, zeros.count, 0)
    _ = fdatasync(descriptor)
  }
}
