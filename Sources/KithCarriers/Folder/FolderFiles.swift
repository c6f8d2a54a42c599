import Glibc
import Kith

/// The files of a place.
extension FolderPlace {
  /// A file's size; nil if there is none, or it is no regular file.
  func bytes(of name: String) throws(FolderFailure) -> Int? {
    var information = stat()
    let descriptor = directory.descriptor
    do throws(FolderFailure) {
      try systemCall { fstatat(descriptor, name, &information, AT_SYMLINK_NOFOLLOW) }
    } catch  where error == .system(ENOENT) {
      // Deleted since the directory was read.
      return nil
    }
    return information.st_mode & S_IFMT == S_IFREG ? Int(information.st_size) : nil
  }

  /// A file's bytes; nil if there is none, or it is no regular file.
  func read(
    _ name: String, limit: Int, isSecond: Bool = false, _ work: BlockingWork
  ) throws(FolderFailure) -> [UInt8]? {
    do throws(FolderFailure) {
      let descriptor = directory.descriptor
      // Without O_NONBLOCK a named pipe would block.
      let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
      let file = OpenFile(taking: try systemCall { openat(descriptor, name, flags) })
      let information = try file.information()
      guard information.st_mode & S_IFMT == S_IFREG else { return nil }
      guard let bytes = try file.readAll(size: Int(information.st_size), limit: limit, work) else {
        throw .tooMuch("The object “\(name)” has more than \(limit) bytes.")
      }
      return bytes
    } catch {
      switch error {
      case .system(ENOENT), .system(ELOOP):
        try checkIsThere()
        return nil
      // Another computer has deleted it on NFS meanwhile.
      case .system(ESTALE) where !isSecond:
        return try read(name, limit: limit, isSecond: true, work)
      // A bad sector, unless the whole place is gone.
      case .system(EIO):
        try checkIsThere()
        throw .unreadable(name)
      default: throw error
      }
    }
  }

  func write(_ bytes: [UInt8], _ name: String, _ work: BlockingWork) throws(FolderFailure) {
    let descriptor = directory.descriptor
    let temporary = ".\(name).tmp"
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    // Readable by others as far as the umask says: the devices may be several users of one server,
    // and the bytes are sealed.
    let mode: mode_t = 0o666
    let opened: Int32
    do throws(FolderFailure) {
      opened = try systemCall { openat(descriptor, temporary, flags, mode) }
    } catch {
      // The rest of a put that broke off.
      guard error == .system(EEXIST) else { throw error }
      unlinkat(descriptor, temporary, 0)
      opened = try systemCall { openat(descriptor, temporary, flags, mode) }
    }
    do throws(FolderFailure) {
      let file = OpenFile(taking: opened)
      try file.writeAll(bytes, work)
      try systemCall { fsync(opened) }
      try file.close()
      try systemCall { renameat(descriptor, temporary, descriptor, name) }
      try Self.synchronize(descriptor)
    } catch {
      unlinkat(descriptor, temporary, 0)
      throw error
    }
    try checkIsThere()
  }

  func remove(_ name: String) throws(FolderFailure) {
    let descriptor = directory.descriptor
    do throws(FolderFailure) {
      try systemCall { unlinkat(descriptor, name, 0) }
    } catch {
      guard error == .system(ENOENT) else { throw error }
      try checkIsThere()
    }
  }
}

extension OpenFile {
  /// Nil if there are more bytes than the limit.
  fileprivate func readAll(
    size: Int, limit: Int, _ work: BlockingWork
  ) throws(FolderFailure) -> [UInt8]? {
    guard size <= limit else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(size)
    var chunk = [UInt8](repeating: 0, count: min(max(size, 1), CarrierLimits.chunkBytes))
    while !work.isAbandoned {
      let count = try chunk.withUnsafeMutableBufferPointer { chunk throws(FolderFailure) in
        try systemCall { Glibc.read(descriptor, chunk.baseAddress, chunk.count) }
      }
      guard count > 0 else { return bytes }
      guard bytes.count + count <= limit else { return nil }
      bytes += chunk.prefix(count)
      work.progress()
    }
    throw .system(ECANCELED)
  }

  fileprivate func writeAll(
    _ bytes: [UInt8], _ work: BlockingWork
  ) throws(FolderFailure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      if work.isAbandoned { throw .system(ECANCELED) }
      let count = try rest.withUnsafeBufferPointer { rest throws(FolderFailure) in
        try systemCall {
          Glibc.write(descriptor, rest.baseAddress, min(rest.count, CarrierLimits.chunkBytes))
        }
      }
      rest = rest.dropFirst(count)
      work.progress()
    }
  }
}

/// Why an operation on a folder failed.
enum FolderFailure: Error, Equatable {
  /// A system call did, with this `errno`.
  case system(Int32)
  /// The folder in which to make one does not exist.
  case noParent(String)
  /// A file, or a link that leads to no folder, is in the folder's place.
  case notAFolder(String)
  /// The storage cannot read the object of this name, and has its place.
  case unreadable(String)
  /// There is more than the caller takes; in words.
  case tooMuch(String)
}

extension CarrierFailure {
  /// `action` is for the message: “write to the folder”.
  init(_ failure: FolderFailure, _ action: String) {
    let code: Int32
    switch failure {
    case .system(let number): code = number
    case .noParent(let path):
      self.init(
        .notThere,
        "There is no folder \(path). See whether the path is right, and whether what belongs there is "
          + "mounted; if so, make that folder first.")
      return
    case .notAFolder(let path):
      self.init(
        .notThere,
        "\(path) is a file, or a link that leads to no folder. Give the path of a folder, "
          + "or mount what the link leads to.")
      return
    case .unreadable(let name):
      self.init(
        .unexpected,
        "The folder's disk or server cannot read the object “\(name)”; see what the system's log says."
      )
      return
    case .tooMuch(let text):
      self.init(.tooMuch, text)
      return
    }
    let kind: Code
    let remedy: String
    switch code {
    // A medium that was pulled out, a mount that is gone, a server that forgot the file.
    case ENOENT, ENOTDIR, EIO, ENODEV, ENXIO, ESTALE, ENOTCONN, ENOMEDIUM:
      (kind, remedy) = (.notThere, "see whether the folder is mounted")
    case ENOSPC, EDQUOT, EFBIG:
      (kind, remedy) = (.full, "free space on the storage")
    case EACCES, EPERM, EROFS:
      (kind, remedy) = (.denied, "let this user read and write the folder and its files")
    case ETIMEDOUT, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ECONNREFUSED, ECONNRESET:
      (kind, remedy) = (.unreachable, "see whether its server can be reached")
    default:
      (kind, remedy) = (.unexpected, "see what the system's log says")
    }
    let reason = String(cString: strerror(code))
    self.init(kind, "Cannot \(action) (\(reason)); \(remedy).")
  }
}

/// Calls again for as long as a signal interrupts the call. The result is never negative.
@discardableResult
func systemCall<Number: FixedWidthInteger>(
  _ call: () -> Number
) throws(FolderFailure) -> Number {
  while true {
    let result = call()
    if result >= 0 { return result }
    let code = errno
    if code != EINTR { throw .system(code) }
  }
}

/// An open file, closed at the end of its life.
struct OpenFile: ~Copyable {
  let descriptor: Int32

  init(taking descriptor: Int32) { self.descriptor = descriptor }

  deinit { _ = Glibc.close(descriptor) }

  /// Closes it and says whether that failed: NFS reports a full disk only then.
  consuming func close() throws(FolderFailure) {
    let descriptor = descriptor
    discard self
    // After an interruption Linux has closed it all the same.
    if Glibc.close(descriptor) != 0, errno != EINTR { throw .system(errno) }
  }

  func information() throws(FolderFailure) -> stat {
    var information = stat()
    try systemCall { fstat(descriptor, &information) }
    return information
  }
}
