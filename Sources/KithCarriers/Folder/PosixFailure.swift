import Glibc
import Kith

/// Why an operation on a folder failed.
enum FolderFailure: Error, Equatable {
  /// A system call did, with this `errno`.
  case system(Int32)
  /// The folder in which to make one does not exist.
  case noParent(String)
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
      (kind, remedy) = (.denied, "give this user write access to the folder")
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
