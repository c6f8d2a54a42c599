import Glibc
import Kith
import Synchronization

/// A folder that something else brings to the other devices: Syncthing, NFS, SMB, a USB stick.
///
/// An object is a regular file. It is written under a temporary name, made durable, and renamed.
/// Symbolic links, sub-directories and files of other programs are no objects.
final class FolderCarrier: CarrierStorage {
  private let path: String
  private let quiet: Duration
  private let threads = BlockingThreads(count: CarrierLimits.folderThreads)
  /// Temporary files by the time this process first saw them.
  private let temporaryFiles = Mutex<[String: ContinuousClock.Instant]>([:])

  /// The folder at an absolute path. Only ``makePlace(_:)`` makes one that is missing.
  init(path: String, quiet: Duration = CarrierLimits.quiet) {
    self.path = path
    self.quiet = quiet
  }

  func makePlace(_ place: String) async throws(CarrierFailure) {
    try await at(place, "make the folder", creating: true) { _, _ in }
  }

  func list(
    _ place: String, limit: Int
  ) async throws(CarrierFailure) -> [CarrierObject] {
    let (objects, temporary) = try await at(place, "list the folder") {
      folder, work throws(FolderFailure) in
      var objects: [CarrierObject] = []
      var temporary: [String] = []
      var foreign = 0
      try folder.forEachName { name throws(FolderFailure) in
        work.progress()
        if Self.isTemporary(name), temporary.count < CarrierLimits.temporaryFiles {
          temporary.append(name)
        }
        if ObjectNames.isObject(name), let bytes = try folder.bytes(of: name) {
          objects.append(CarrierObject(name: name, bytes: bytes))
        } else {
          foreign += 1
        }
        guard objects.count <= limit, foreign <= CarrierLimits.foreignMembers else {
          throw .tooMuch(CarrierFailure.tooMany(limit).message)
        }
        return !work.isAbandoned
      }
      try folder.checkIsThere()
      return (objects, temporary)
    }
    await removeOld(temporary, in: place)
    return objects
  }

  func get(
    _ name: String, from place: String, limit: Int
  ) async throws(CarrierFailure) -> [UInt8]? {
    try ObjectNames.checked(name)
    return try await at(place, "read from the folder") { folder, work throws(FolderFailure) in
      try folder.read(name, limit: limit, work)
    }
  }

  func put(
    _ bytes: [UInt8], as name: String, in place: String
  ) async throws(CarrierFailure) {
    try ObjectNames.checked(name)
    try await at(place, "write to the folder") { folder, work throws(FolderFailure) in
      try folder.write(bytes, name, work)
    }
  }

  func delete(_ name: String, from place: String) async throws(CarrierFailure) {
    try ObjectNames.checked(name)
    try await at(place, "delete from the folder") { folder, _ throws(FolderFailure) in
      try folder.remove(name)
    }
  }

  /// The kernel's events, those of our own puts included; it has none for changes that another
  /// computer makes on NFS or SMB. The first element says that the watch has begun. Ends if the place
  /// is not there or goes away.
  func changes(in place: String) -> AsyncStream<Void>? {
    guard let directories = try? ObjectNames.directories(of: place) else { return nil }
    return FolderChanges.stream(path: path, directories: directories, threads)
  }

  /// Runs work on the place's directory on a thread. `action` is for the message if it fails.
  private func at<Value: Sendable>(
    _ place: String, _ action: String, creating: Bool = false,
    _ body:
      @escaping @Sendable (borrowing FolderPlace, BlockingWork) throws(FolderFailure) -> Value
  ) async throws(CarrierFailure) -> Value {
    let path = path
    let directories = try ObjectNames.directories(of: place)
    return try await onThread(of: threads, quiet: quiet) {
      work throws(CarrierFailure) in
      do throws(FolderFailure) {
        return try body(Self.open(path, directories, creating), work)
      } catch {
        throw CarrierFailure(error, action)
      }
    }
  }

  /// Once more if an NFS server has forgotten the directory, because a new look-up finds it.
  private static func open(
    _ path: String, _ directories: [String], _ creating: Bool
  ) throws(FolderFailure) -> FolderPlace {
    do throws(FolderFailure) {
      return try FolderPlace(path: path, directories: directories, creating: creating)
    } catch  where error == .system(ESTALE) {
      return try FolderPlace(path: path, directories: directories, creating: creating)
    }
  }

  private static func isTemporary(_ name: String) -> Bool {
    name.hasPrefix(".") && name.hasSuffix(".tmp")
      && ObjectNames.isObject(name.dropFirst().dropLast(".tmp".count))
  }

  /// Removes what a put left that broke off. Only the time since this process first saw it counts.
  private func removeOld(_ names: [String], in place: String) async {
    let now = ContinuousClock.now
    let old = temporaryFiles.withLock { seen in
      seen = Dictionary(
        names.map { ("\(place)/\($0)", seen["\(place)/\($0)"] ?? now) }, uniquingKeysWith: min)
      return names.filter { now - (seen["\(place)/\($0)"] ?? now) > CarrierLimits.temporaryAge }
    }
    guard !old.isEmpty else { return }
    // If this fails, the next listing tries again.
    try? await at(place, "delete from the folder") { folder, _ in
      for name in old { try? folder.remove(name) }
    }
  }
}

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
    var current = OpenFile(taking: try openFolder(path))
    for name in directories {
      let parent = current.descriptor
      if creating, try make({ mkdirat(parent, name, 0o777) }) { try synchronize(parent) }
      current = OpenFile(taking: try systemCall { openat(parent, name, flags | O_NOFOLLOW) })
    }
    return current
  }

  private static func openFolder(_ path: String) throws(FolderFailure) -> Int32 {
    do throws(FolderFailure) {
      return try systemCall { Glibc.open(path, flags) }
    } catch {
      var information = stat()
      guard [ENOTDIR, ENOENT].map(FolderFailure.system).contains(error),
        lstat(path, &information) == 0
      else { throw error }
      throw .notAFolder(path)
    }
  }

  /// Makes a folder, but none above it: a mistyped path, or a medium that is not mounted, would fill
  /// the disk.
  private static func makeFolder(_ path: String) throws(FolderFailure) {
    let parent = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
    do throws(FolderFailure) {
      guard try make({ mkdir(path, 0o777) }) else { return }
    } catch {
      if error == .system(ENOENT), access(parent, F_OK) != 0 { throw .noParent(parent) }
      if error == .system(ENOTDIR) { throw .notAFolder(parent) }
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
    guard Self.isSame(held, again) else { throw .system(ENOENT) }
  }

  /// Whether a directory that was opened before is the one at its path now. A removed one has no
  /// name; some file systems count no names of directories.
  static func isSame(_ held: stat, _ again: stat) -> Bool {
    (held.st_nlink > 0 || again.st_nlink == 0)
      && held.st_dev == again.st_dev && held.st_ino == again.st_ino
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
