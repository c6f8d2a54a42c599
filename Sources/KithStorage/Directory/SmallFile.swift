import Foundation
package import KithCore

/// Reads small private files beside devices, and replaces them in one step.
package enum SmallFile {
  /// Returns the bytes of a file; nil if there is none.
  ///
  /// - Throws: `StorageError` if it is larger than allowed or cannot be read.
  package static func read(
    _ path: String, atMost limit: Int
  ) throws(StorageError) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else {
      let number = errno
      guard number != ENOENT else { return nil }
      if number == EACCES,
        let foreign = Files.foreign((path as NSString).deletingLastPathComponent)
      {
        throw foreign
      }
      throw .system("open it", path, errno: number)
    }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else { throw .system("read it", path, errno: errno) }
    guard count <= limit else { throw .damaged(path, "the file has more than \(limit) bytes") }
    return Array(bytes.prefix(count))
  }

  /// Replaces the bytes of a file, durably: a reader gets the old bytes or the new.
  package static func replace(_ path: String, with bytes: [UInt8]) throws(StorageError) {
    let new = path + ".new"
    try Files.remove(new)
    let file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .system("make it", new, errno: errno) }
    let isWritten = write(file, bytes, bytes.count) == bytes.count && fsync(file) == 0
    let number = errno
    close(file)
    guard isWritten else { throw .system("write it", new, errno: number) }
    try Files.rename(new, to: path)
    try Files.synchronize((path as NSString).deletingLastPathComponent)
  }

  /// Creates a directory of mode 0700, or checks that the existing one is private.
  package static func makeDirectory(_ path: String) throws(StorageError) {
    try Files.makePrivateDirectory(path)
  }

  /// Renames a file or directory; the new path must be free.
  package static func rename(_ old: String, to new: String) throws(StorageError) {
    try Files.rename(old, to: new)
  }

  /// Calls the body while no other process does so with the same lock file.
  package static func withLock<Result>(
    _ path: String, _ body: () throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .system("open it", path, errno: errno) }
    defer { close(file) }
    guard flock(file, LOCK_EX) == 0 else { throw .system("lock it", path, errno: errno) }
    defer { flock(file, LOCK_UN) }
    return try body()
  }
}
