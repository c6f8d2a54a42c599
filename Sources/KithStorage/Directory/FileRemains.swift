import Glibc

/// An unlinked file, held open to be overwritten.
///
/// That reaches the blocks on file systems that write in place (ext4, xfs). It misses those of
/// copy-on-write systems (btrfs, zfs), and blocks that the disk has remapped.
struct FileRemains: ~Copyable {
  private let descriptor: Int32

  /// Holds the file open, if it can be opened.
  init(_ path: String) {
    descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW)
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
