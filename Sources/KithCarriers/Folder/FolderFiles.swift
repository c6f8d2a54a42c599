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
