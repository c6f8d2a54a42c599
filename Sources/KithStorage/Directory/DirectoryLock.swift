import Glibc
import KithCore
import KithCrypto
import Synchronization

/// The lock of a device's directory: `flock` on the file `lock`. It is released with the last
/// reference, or by the kernel when the process ends; the file is never removed.
///
/// It holds the owner's process id, and the generation: a random token that changes each time the
/// directory is opened or closed (see ``OriginGuard``). The lines have a fixed length, so that
/// rewriting is one write within one sector.
/// ```
/// pid 0000004711
/// generation 00112233445566778899aabbccddeeff
/// ```
package final class DirectoryLock: Sendable {
  private struct State {
    var descriptor: Int32
    var generation: Digest128?
  }

  let layout: Layout
  private let opener = Opener()
  private let state: Mutex<State>

  /// Throws `inUse` with the owner. If `isForReading`, the file must exist, and does not change.
  init(_ layout: Layout, isForReading: Bool = false) throws(StorageError) {
    self.layout = layout
    let path = layout.lock
    let flags = isForReading ? O_RDONLY : O_RDWR | O_CREAT
    let descriptor = Glibc.open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw .system("open it", path, errno: errno) }
    let content = Self.read(descriptor)
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let number = errno
      Glibc.close(descriptor)
      guard number == EWOULDBLOCK else { throw .system("lock it", path, errno: number) }
      throw Self.inUse(layout.directory, by: content.owner)
    }
    // Read again, because the owner may have changed it before releasing the lock.
    let generation = Self.read(descriptor).generation
    state = Mutex(State(descriptor: descriptor, generation: generation))
    // Names the new owner. A directory without a generation gets one with its database.
    if let generation, !isForReading { try write(generation) }
  }

  deinit { release() }

  /// Nil if the file has none.
  var generation: Digest128? { state.withLock { $0.generation } }

  /// Durable; with the process id.
  func write(_ generation: Digest128) throws(StorageError) {
    let pid = String(getpid())
    let zeros = String(repeating: "0", count: 10 - pid.count)
    let text = "pid \(zeros)\(pid)\ngeneration \(generation.hex)\n"
    let number = state.withLock { state -> Int32 in
      let bytes = Array(text.utf8)
      guard pwrite(state.descriptor, bytes, bytes.count, 0) == bytes.count,
        fdatasync(state.descriptor) == 0
      else { return errno }
      state.generation = generation
      return 0
    }
    guard number == 0 else { throw .system("write it", layout.lock, errno: number) }
  }

  /// Closing alone is not enough: a child that the program is starting has the descriptor until it
  /// executes another program (flock(2)). A forked child leaves the lock to its parent: they share it.
  func release() {
    guard opener.isThisProcess else { return }
    state.withLock { state in
      guard state.descriptor >= 0 else { return }
      flock(state.descriptor, LOCK_UN)
      // Tells a process that waits for the directory: inotify(7), IN_ATTRIB.
      fchmod(state.descriptor, 0o600)
      Glibc.close(state.descriptor)
      state.descriptor = -1
    }
  }

  private static func inUse(_ directory: String, by owner: Int32?) -> StorageError {
    let process = owner.map { "process \($0)" } ?? "another process"
    return StorageError(
      code: .inUse, path: directory,
      message: "is in use by \(process); stop it or give another --directory")
  }

  private static func read(_ descriptor: Int32) -> (owner: Int32?, generation: Digest128?) {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    let count = pread(descriptor, &bytes, bytes.count, 0)
    return content(of: bytes.prefix(max(0, count)))
  }

  /// At most so many bytes have a meaning.
  static let byteCount = 128

  static func content(
    of bytes: some Collection<UInt8>
  ) -> (owner: Int32?, generation: Digest128?) {
    var owner: Int32?
    var generation: Digest128?
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      if line.hasPrefix("pid ") { owner = Int32(line.dropFirst(4)) }
      if line.hasPrefix("generation ") { generation = Digest128(hex: line.dropFirst(11)) }
    }
    return (owner, generation)
  }
}

/// The process that opened a file. A child of `fork` inherits the descriptors and locks of its parent,
/// and the memory with any mutex locked, so it may neither use nor close what the parent opened.
struct Opener: Sendable {
  private let process = getpid()

  var isThisProcess: Bool { getpid() == process }
}
