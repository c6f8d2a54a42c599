import Glibc
import KithTestSupport

/// A plain TCP connection to loopback, as a stranger makes it.
final class RawConnection {
  private var descriptor: Int32
  /// Bytes that came back.
  private(set) var received: [UInt8] = []
  /// Whether the other side has closed.
  private(set) var isClosed = false

  /// Connects, and sends what the stranger has to say.
  init(port: Int, sending bytes: [UInt8]) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard descriptor >= 0, result == 0 else {
      throw NotInTime("no connection: \(String(cString: strerror(errno)))")
    }
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Says more, if the other side still listens.
  func send(_ bytes: [UInt8]) {
    guard descriptor >= 0 else { return }
    _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Takes in what is there, without waiting.
  func look() {
    var bytes = [UInt8](repeating: 0, count: 4_096)
    while !isClosed {
      let count = recv(descriptor, &bytes, bytes.count, 0)
      if count > 0 {
        received += bytes.prefix(count)
      } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
        isClosed = true
        close(descriptor)
        descriptor = -1
      } else {
        return
      }
    }
  }

  /// Lets this process hold as many files as it may.
  static func raiseLimits() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = min(limit.rlim_max, 16_384)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
