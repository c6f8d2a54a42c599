internal import Glibc
internal import KithStorage
internal import NIOCore

enum LocalSocket {
  /// Binds and listens, so that no other user can ever connect. Removes the socket of a node that
  /// has ended: the caller holds the directory's lock.
  ///
  /// Linux gives the path the socket's mode, less the process's mask. Set before binding, the mode
  /// needs no change of the mask, which all threads share.
  static func listen(at path: String) throws(KithError) -> Int32 {
    let descriptor = socket(
      AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw failure("socket", path) }
    _ = unlink(path)
    let isBound =
      fchmod(descriptor, 0o600) == 0
      && withAddress(of: path) { bind(descriptor, $0, $1) } == 0
    // A mask may have removed the owner's bits. The mode changes last, because that tells a process
    // that waits for the socket (``DirectoryWatch``).
    guard isBound, Glibc.listen(descriptor, Int32(LocalLimits.connections)) == 0,
      chmod(path, 0o600) == 0
    else {
      let error = failure("bind", path)
      close(descriptor)
      throw error
    }
    return descriptor
  }

  /// Blocks while the queue is full, at most for a time, in whole seconds from 1.
  ///
  /// - Throws: ``KithError`` with `notRunning` if no process listens, `timedOut`, or `control`.
  static func connect(
    to path: String, within limit: Duration = LocalLimits.connect
  ) throws(KithError) -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw failure("socket", path) }
    var seconds = timeval(tv_sec: max(1, Int(limit.components.seconds)), tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_SNDTIMEO, &seconds, socklen_t(MemoryLayout<timeval>.size))
    var result: Int32
    repeat {
      result = withAddress(of: path) { Glibc.connect(descriptor, $0, $1) }
    } while result != 0 && errno == EINTR
    if result == 0 { return descriptor }
    let code = errno
    close(descriptor)
    if code == EAGAIN { throw notAnswered(path) }
    guard code == ENOENT || code == ECONNREFUSED else {
      errno = code
      throw failure("connect", path)
    }
    throw KithError(
      .notRunning, "No node answers there. Start one, or open the directory itself.", path: path)
  }

  static func notAnswered(_ path: String) -> KithError {
    KithError(
      .timedOut,
      "The node that has the directory open does not answer. See that it is not stopped.",
      path: path)
  }

  /// Calls a body with the socket's address. A path that is too long for one leads through a descriptor
  /// of its directory: proc(5), `/proc/self/fd`. Returns -1, with `errno`, if there is no address.
  private static func withAddress(
    of path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(path.utf8)
    var directory: Int32?
    defer {
      let code = errno
      if let directory { close(directory) }
      errno = code
    }
    // The last byte is zero.
    let limit = MemoryLayout.size(ofValue: address.sun_path) - 1
    if bytes.count > limit, let slash = bytes.lastIndex(of: UInt8(ascii: "/")) {
      let opened = open(
        String(decoding: bytes[..<slash], as: UTF8.self), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard opened >= 0 else { return -1 }
      directory = opened
      bytes = Array("/proc/self/fd/\(opened)".utf8) + bytes[slash...]
    }
    guard bytes.count <= limit else {
      errno = ENAMETOOLONG
      return -1
    }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  /// The caller holds the directory's lock.
  static func remove(_ path: String) { _ = unlink(path) }

  /// Whether the other end is this process's user: unix(7), SO_PEERCRED.
  static func isSameUser(_ channel: any SocketOptionProvider) -> EventLoopFuture<Bool> {
    channel.unsafeGetSocketOption(
      level: .socket, name: NIOBSDSocket.Option(rawValue: SO_PEERCRED)
    ).map { (credentials: PeerCredentials) in isAllowed(credentials.user) }
  }

  /// The same; a client's other end is the listener.
  static func isSameUser(descriptor: Int32) -> Bool {
    var credentials = PeerCredentials()
    var size = socklen_t(MemoryLayout<PeerCredentials>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else {
      return false
    }
    return isAllowed(credentials.user)
  }

  static func isAllowed(_ user: UInt32) -> Bool { user == geteuid() }

  /// The error for another user's socket. If the directory is also that user's, it tells how to use
  /// it.
  static func servedByAnother(_ path: String) -> KithError {
    let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    if let refusal = Files.foreign(directory) { return KithError(refusal) }
    return KithError(
      .control, "Another user serves the control socket. Use a directory of your own.", path: path)
  }

  /// The kernel's `struct ucred`.
  private struct PeerCredentials {
    var process: Int32 = 0
    var user: UInt32 = 0
    var group: UInt32 = 0
  }

  private static func failure(_ call: String, _ path: String) -> KithError {
    KithError(
      .control, "The control socket cannot be used: \(call): \(String(cString: strerror(errno))).",
      path: path)
  }
}
