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

  /// For another process that has a lock, which reads and writes a small file.
  package static let longestLock = Duration.seconds(10)
  private static let lockMicroseconds: UInt32 = 10_000

  /// Excludes other processes with the same lock file. Blocks for them, and throws `inUse` if that takes
  /// too long.
  package static func withLock<Result>(
    _ path: String, within limit: Duration = longestLock, _ body: () throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard file >= 0 else { throw .system("open it", path, errno: errno) }
    defer { close(file) }
    let end = ContinuousClock.now + limit
    while flock(file, LOCK_EX | LOCK_NB) != 0 {
      let number = errno
      guard number == EWOULDBLOCK else { throw .system("lock it", path, errno: number) }
      guard ContinuousClock.now < end else {
        throw StorageError(
          code: .inUse, path: path,
          message: "another process has kept it locked for \(limit); end that, and try again")
      }
      usleep(lockMicroseconds)
    }
    defer { flock(file, LOCK_UN) }
    return try body()
  }
}
