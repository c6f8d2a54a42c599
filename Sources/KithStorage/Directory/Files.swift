import FoundationEssentials
import Glibc
package import KithCore
import KithCrypto

/// The errors include the remedy.
package enum Files {
  static func exists(_ path: String) -> Bool {
    access(path, F_OK) == 0
  }

  /// The directory of a file or directory; empty for a single name, and `/` for itself.
  package static func parent(of path: String) -> String {
    let slash = UInt8(ascii: "/")
    guard let name = path.utf8.lastIndex(where: { $0 != slash }) else {
      return path.isEmpty ? "" : "/"
    }
    guard let end = path.utf8[..<name].lastIndex(of: slash) else { return "" }
    return path.utf8[..<end].lastIndex { $0 != slash }.map { String(path[...$0]) } ?? "/"
  }

  /// 0 if there is no file.
  static func size(_ path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// The bytes that this user may still write to the file system; nil: unknown.
  static func freeBytes(_ path: String) -> Int? {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { return nil }
    return Int(
      clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        .partialValue)
  }

  /// Checks that a path is of its kind, and that this user alone owns and may use it. A symbolic
  /// link is refused.
  ///
  /// Call it for a directory only if it is Kith's or empty: the error's command would harm any
  /// other.
  ///
  /// - Throws: `unsafePermissions` with the command that repairs it; `damaged` if it is of another
  ///   kind; or the error of `lstat`.
  static func checkPrivate(_ path: String, directory: Bool) throws(StorageError) {
    let status = try status(path, directory: directory)
    guard status.st_uid == geteuid() else {
      guard !directory else { throw foreign(path, owner: status.st_uid) }
      let command = "chown \(userName(geteuid()) ?? "\(geteuid())") \(ShellText.quoted(path))"
      throw StorageError(
        code: .unsafePermissions, path: path,
        message: "belongs to the user \(userName(status.st_uid) ?? "\(status.st_uid)"); run: "
          + (geteuid() == 0 ? command : "sudo \(command)"))
    }
    let mode: mode_t = directory ? 0o700 : 0o600
    let shown = String(status.st_mode & 0o7777, radix: 8)
    let remedy = "run: chmod \(String(mode, radix: 8)) \(ShellText.quoted(path))"
    guard status.st_mode & 0o7777 & ~mode == 0 else {
      throw StorageError(
        code: .unsafePermissions, path: path,
        message: "others may use it (mode \(shown)); \(remedy)")
    }
    // Otherwise a directory whose files are not visible would be treated as empty.
    let least: mode_t = directory ? 0o500 : 0o400
    guard status.st_mode & least == least else {
      throw StorageError(
        code: .unsafePermissions, path: path,
        message: "its owner may not use it (mode \(shown)); \(remedy)")
    }
  }

  /// Refuses another kind, and symbolic links.
  private static func status(_ path: String, directory: Bool) throws(StorageError) -> stat {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw .system("read its status", path, errno: errno) }
    let kind = directory ? S_IFDIR : S_IFREG
    guard status.st_mode & S_IFMT == kind else {
      if directory, let link = linked(path) { throw link }
      let isLink = status.st_mode & S_IFMT == S_IFLNK
      throw StorageError(
        code: .wrongFileType, path: path,
        message: "is \(isLink ? "a link, " : "")not a \(directory ? "directory" : "plain file"); "
          + (directory ? "give another directory" : "put the file itself in its place"))
    }
    return status
  }

  /// Whether owner and mode are right.
  static func isPrivateDirectory(_ path: String) throws(StorageError) -> Bool {
    let status = try status(path, directory: true)
    return status.st_uid == geteuid() && status.st_mode & 0o7777 & ~0o700 == 0
      && status.st_mode & 0o500 == 0o500
  }

  static func canLookInto(_ path: String) -> Bool { access(path, R_OK | X_OK) == 0 }

  /// False if this user cannot list it.
  static func isEmptyDirectory(_ path: String) -> Bool {
    (try? FileManager.default.contentsOfDirectory(atPath: path).isEmpty) ?? false
  }

  /// Nil unless the path is a symbolic link, which is no directory of Kith.
  package static func linked(_ path: String) -> StorageError? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return nil }
    return StorageError(
      code: .wrongFileType, path: path,
      message: exists(path)
        ? "is a link, not a directory; give the directory itself: "
          + ShellText.quoted(URL(filePath: path).resolvingSymlinksInPath().path)
        : "is a link that leads nowhere; mount or make what it leads to, and give that, or give "
          + "another directory")
  }

  /// Nil unless the path is another user's directory.
  package static func foreign(_ path: String) -> StorageError? {
    foreignOwner(of: path).map { foreign(path, owner: $0) }
  }

  private static func foreignOwner(of path: String) -> uid_t? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR,
      status.st_uid != geteuid()
    else { return nil }
    return status.st_uid
  }

  private static func foreign(_ path: String, owner: uid_t) -> StorageError {
    guard let name = userName(owner) else {
      return StorageError(
        code: .unsafePermissions, path: path,
        message: "belongs to the user \(owner); give another --directory")
    }
    let command = geteuid() == 0 ? "runuser -u" : "sudo -u"
    return StorageError(
      code: .unsafePermissions, path: path,
      message:
        "belongs to the user \(name); run kith as that user: \(command) \(name) -- kith status "
        + "--directory \(ShellText.quoted(path)); or give another --directory")
  }

  private static func userName(_ user: uid_t) -> String? {
    var entry = passwd()
    var found: UnsafeMutablePointer<passwd>?
    var buffer = [CChar](repeating: 0, count: 16_384)
    guard getpwuid_r(user, &entry, &buffer, buffer.count, &found) == 0, found != nil else {
      return nil
    }
    return entry.pw_name.map { String(cString: $0) }
  }

  /// SQLite reports a file that may not be written as an error of the disk.
  static func checkWritable(_ files: [String]) throws(StorageError) {
    for file in files where access(file, W_OK) != 0 && errno != ENOENT {
      throw .system("write it", file, errno: errno)
    }
  }

  /// See ``checkPrivate(_:directory:)``.
  static func checkPrivateIfThere(_ path: String) throws(StorageError) {
    var status = stat()
    guard lstat(path, &status) == 0 || errno != ENOENT else { return }
    try checkPrivate(path, directory: false)
  }

  /// Also makes missing parents. An existing directory must be private already. If it holds other
  /// files, the error has no command to change it: they may be a host's.
  package static func makePrivateDirectory(_ path: String) throws(StorageError) {
    if !exists(path), let link = linked(path) { throw link }
    if exists(path) {
      guard try !isPrivateDirectory(path) else { return }
      if let foreign = foreign(path) { throw foreign }
      guard Layout(path).isKiths || isEmptyDirectory(path) || !canLookInto(path) else {
        throw StorageError(
          code: .unsafePermissions, path: path,
          message:
            "holds other files, and others may use it; give a directory for Kith alone, such as "
            + "--directory \(ShellText.quoted(path + (path.hasSuffix("/") ? "kith" : "/kith")))")
      }
      return try checkPrivate(path, directory: true)
    }
    let parent = parent(of: path)
    if !parent.isEmpty, !exists(parent) { try makePrivateDirectory(parent) }
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      guard errno == EACCES, let owner = foreignOwner(of: parent) else {
        throw .system("make the directory", path, errno: errno)
      }
      throw StorageError(
        code: .unsafePermissions, path: path,
        message:
          "cannot be made: \(parent) belongs to the user \(userName(owner) ?? "\(owner)"); give another "
          + "--directory, or set HOME")
    }
    // An unusual umask may have removed bits of the owner.
    guard chmod(path, 0o700) == 0 else { throw .system("set its mode", path, errno: errno) }
  }

  /// Fails if the file exists.
  static func makePrivateFile(_ path: String) throws(StorageError) {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .system("make it", path, errno: errno) }
    close(file)
  }

  /// Waits for the disk; fails if the file exists.
  static func writeDurably(_ bytes: UnsafeRawBufferPointer, to path: String) throws(StorageError) {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .system("make it", path, errno: errno) }
    defer { close(file) }
    guard write(file, bytes.baseAddress, bytes.count) == bytes.count, fsync(file) == 0 else {
      throw .system("write it", path, errno: errno)
    }
  }

  /// Into guarded memory.
  static func read(_ path: String, atMost limit: Int) throws(StorageError) -> SecretBytes {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else { throw .system("open it", path, errno: errno) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw .system("read its status", path, errno: errno) }
    guard (1...limit).contains(Int(status.st_size)) else {
      throw .damaged(path, "the file has \(status.st_size) bytes, which it cannot have")
    }
    var count = 0
    let content = SecretBytes(count: Int(status.st_size)) {
      count = Glibc.read(file, $0.baseAddress, $0.count)
    }
    guard count == content.count else { throw .system("read it", path, errno: errno) }
    return content
  }

  /// All if there are fewer.
  static func head(_ path: String, count: Int) throws(StorageError) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else { throw .system("open it", path, errno: errno) }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: count)
    let read = Glibc.read(file, &bytes, count)
    guard read >= 0 else { throw .system("read it", path, errno: errno) }
    return Array(bytes.prefix(read))
  }

  /// Replaces a file at the new path.
  static func rename(_ old: String, to new: String) throws(StorageError) {
    guard Glibc.rename(old, new) == 0 else { throw .system("rename it", old, errno: errno) }
  }

  /// Succeeds if there is no file.
  static func remove(_ path: String) throws(StorageError) {
    guard unlink(path) == 0 || errno == ENOENT else {
      throw .system("remove it", path, errno: errno)
    }
  }

  /// Waits until the names in a directory, or the bytes of a file, are on the disk.
  static func synchronize(_ path: String) throws(StorageError) {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw .system("open it", path, errno: errno) }
    defer { close(file) }
    guard fsync(file) == 0 else { throw .system("write it", path, errno: errno) }
  }
}

/// For commands that people should run.
package enum ShellText {
  /// One word, in single quotes.
  package static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}

/// A file in use, to learn that it was deleted: what is written to it then is lost.
///
/// A descriptor of `O_PATH` neither holds nor releases locks on the file (open(2)).
final class FileInUse: Sendable {
  /// `O_PATH` of `asm-generic/fcntl.h`.
  private static let pathOnly: Int32 = 0o10_000_000

  private let descriptor: Int32
  /// Some file systems of FUSE count no names of a file that is there.
  private let countsNames: Bool

  init(_ path: String) throws(StorageError) {
    descriptor = open(path, Self.pathOnly | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system("open it", path, errno: errno) }
    countsNames = Self.names(of: descriptor).map { $0 > 0 } ?? false
  }

  deinit { close(descriptor) }

  /// A renamed file, or one in a renamed directory, is not.
  var isDeleted: Bool { countsNames && Self.names(of: descriptor) == 0 }

  private static func names(of descriptor: Int32) -> Int? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_nlink) : nil
  }
}
