import Glibc
import Kith

/// A place's directory, held open. All files are opened relative to it, so nothing outside it can be
/// reached by a symbolic link.
struct FolderPlace: ~Copyable {
  private static let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC

  let path: String
  let directories: [String]
  let directory: OpenFile

  /// The folder may be a symbolic link, because a person named it; the directories below it may not.
  init(path: String, directories: [String], creating: Bool = false) throws(FolderFailure) {
    self.path = path
    self.directories = directories
    directory = try Self.open(path: path, directories: directories, creating: creating)
  }

  private static func open(
    path: String, directories: [String], creating: Bool
  ) throws(FolderFailure) -> OpenFile {
    if creating { try makeFolder(path) }
    var current = OpenFile(taking: try systemCall { Glibc.open(path, flags) })
    for name in directories {
      let parent = current.descriptor
      if creating, try make({ mkdirat(parent, name, 0o777) }) { try synchronize(parent) }
      current = OpenFile(taking: try systemCall { openat(parent, name, flags | O_NOFOLLOW) })
    }
    return current
  }

  /// Makes a folder, but none above it: a mistyped path, or a medium that is not mounted, would fill
  /// the disk.
  private static func makeFolder(_ path: String) throws(FolderFailure) {
    let parent = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
    do throws(FolderFailure) {
      guard try make({ mkdir(path, 0o777) }) else { return }
    } catch {
      if error == .system(ENOENT), access(parent, F_OK) != 0 { throw .noParent(parent) }
      throw error
    }
    let file = OpenFile(taking: try systemCall { Glibc.open(parent, flags) })
    try synchronize(file.descriptor)
  }

  /// Makes a directory, and returns whether there was none.
  private static func make(_ call: () -> Int32) throws(FolderFailure) -> Bool {
    do throws(FolderFailure) {
      try systemCall(call)
      return true
    } catch {
      if error == .system(EEXIST) { return false }
      throw error
    }
  }

  /// Makes names durable. Some file systems have no such call for directories.
  static func synchronize(_ descriptor: Int32) throws(FolderFailure) {
    do throws(FolderFailure) {
      try systemCall { fsync(descriptor) }
    } catch {
      if ![EINVAL, ENOSYS, EOPNOTSUPP].map(FolderFailure.system).contains(error) { throw error }
    }
  }

  /// Fails if the directory is no longer what its path leads to: an unmounted medium or a removed
  /// directory looks empty.
  func checkIsThere() throws(FolderFailure) {
    let held = try directory.information()
    let again = try Self.open(path: path, directories: directories, creating: false).information()
    guard held.st_nlink > 0, held.st_dev == again.st_dev, held.st_ino == again.st_ino else {
      throw .system(ENOENT)
    }
  }

  /// Calls a function with each name in the directory, in no order, until it returns false.
  func forEachName(_ body: (String) throws(FolderFailure) -> Bool) throws(FolderFailure) {
    // The stream takes its descriptor over, and has its own position.
    let descriptor = directory.descriptor
    let copy = try systemCall { openat(descriptor, ".", Self.flags) }
    guard let stream = fdopendir(copy) else {
      let code = errno
      close(copy)
      throw .system(code)
    }
    defer { closedir(stream) }
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw .system(errno) }
        return
      }
      // Names that are not UTF-8 are repaired to names that are no object's.
      let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
        tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard try body(name) else { return }
    }
  }
}
