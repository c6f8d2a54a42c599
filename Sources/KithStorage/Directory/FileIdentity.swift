import FoundationEssentials
import Glibc
import KithCore
import KithCrypto

/// The identity of a database's file and machine (`Docs/Decisions/file-identity.md`).
///
/// The kernel draws a generation with each inode, so a copy has another, even with the same inode
/// number. A reboot may change the device number, so it is left out. Unknown parts are zero and
/// match anything.
struct FileIdentity: Equatable {
  /// `FS_IOC_GETVERSION` of `linux/fs.h`: `_IOR('v', 1, long)`.
  private static let getVersion: UInt = 2 << 30 | UInt(MemoryLayout<Int>.size) << 16 | 0x7601

  var inode: UInt64
  /// 0: unknown (ext4, xfs, btrfs and f2fs report it).
  var inodeGeneration: UInt64
  /// From a digest of `/etc/machine-id`; 0: unknown.
  var machine: UInt64

  /// Never call it while SQLite has the file open: closing any descriptor releases the process's
  /// locks on the file.
  static func read(
    _ path: String
  ) throws(StorageError) -> (identity: Self, byteCount: Int) {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw .system("open it", path, errno: errno) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .system("read its status", path, errno: errno) }
    // Declared for a long, but writes an int.
    var buffer: [UInt32] = [0, 0]
    let isKnown = ioctl(file, getVersion, &buffer) == 0
    let identity = Self(
      inode: UInt64(status.st_ino), inodeGeneration: isKnown ? UInt64(buffer[0]) : 0,
      machine: thisMachine())
    return (identity, Int(status.st_size))
  }

  /// Big-endian.
  var bytes: [UInt8] { [inode, inodeGeneration, machine].flatMap(\.row) }

  /// Whether both can be the same file on the same machine.
  func matches(_ other: Self) -> Bool {
    inode == other.inode
      && (inodeGeneration == other.inodeGeneration || inodeGeneration == 0
        || other.inodeGeneration == 0)
      && (machine == other.machine || machine == 0 || other.machine == 0)
  }

  /// Hashed, because `machine-id(5)` asks programs not to expose the id. Containers often have
  /// none, or all the same.
  private static func thisMachine() -> UInt64 {
    guard let text = try? String(contentsOfFile: "/etc/machine-id", encoding: .utf8) else {
      return 0
    }
    let id = text.prefix { !$0.isWhitespace }
    guard id.utf8.count == 32, id.allSatisfy(\.isHexDigit) else { return 0 }
    let digest = Blake2b.digest256(Array("kith machine v1\u{0}".utf8), Array(id.utf8))
    return UInt64(row: digest.bytes[0..<8]) ?? 0
  }
}

extension FileIdentity {
  init?(_ bytes: [UInt8]) {
    guard bytes.count == 24, let inode = UInt64(row: bytes[0..<8]),
      let inodeGeneration = UInt64(row: bytes[8..<16]), let machine = UInt64(row: bytes[16...])
    else { return nil }
    self.inode = inode
    self.inodeGeneration = inodeGeneration
    self.machine = machine
  }
}
