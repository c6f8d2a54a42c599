import Glibc
package import KithCore

/// Small private files beside devices.
package enum SmallFile {
  /// Nil if there is no file.
  ///
  /// - Throws: `StorageError` if it is too large or cannot be read.
  package static func read(
    _ path: String, atMost limit: Int
  ) throws(StorageError) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else {
      let number = errno
      guard number != ENOENT else { return nil }
      if number == EACCES,
        let foreign = Files.foreign(Files.parent(of: path))
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

  /// Durable: a reader gets the old bytes or the new.
  package static func replace(_ path: String, with bytes: [UInt8]) throws(StorageError) {
    let new = path + ".new"
    try Files.remove(new)
    try bytes.span.withUnsafeBytes { bytes throws(StorageError) in
      try Files.writeDurably(bytes, to: new)
    }
    try Files.rename(new, to: path)
    try Files.synchronize(Files.parent(of: path))
  }

  /// Excludes other processes with the same lock file.
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
