import Foundation

/// The bytes of a file that loses its name, held to be overwritten.
///
/// Overwriting reaches the blocks of file systems that write in place (ext4, xfs), not those that
/// write elsewhere (btrfs, zfs), nor what a disk keeps under its own administration.
struct FileRemains: ~Copyable {
  private let descriptor: Int32

  /// Keeps hold of the file; of nothing where it cannot be opened.
  init(_ path: String) {
    descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Overwrites them with zeros, if no other name leads to them: a link may be a person's backup.
  func overwrite() {
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_nlink == 0 else { return }
    let zeros = [UInt8](repeating: 0, count: Int(clamping: status.st_size))
    _ = pwrite(descriptor, zeros, zeros.count, 0)
    _ = fdatasync(descriptor)
  }
}
