import Glibc
import KithProxy
import KithTestSupport

/// Two sockets with a proxy between them, and the listener behind it.
struct ProxyPair {
  let proxy: FaultyProxy
  let listener: TestSocket
  let client: TestSocket
  let target: TestSocket

  /// Another connection: the client's side, and the target's once it is there.
  func connect() async throws -> (client: TestSocket, target: TestSocket) {
    try await Self.connect(proxy, listener)
  }

  private static func connect(
    _ proxy: FaultyProxy, _ listener: TestSocket
  ) async throws -> (client: TestSocket, target: TestSocket) {
    let client = try TestSocket.connect(proxy.port)
    var target: TestSocket?
    try await eventually("a connection at the target") {
      target = listener.accept()
      return target != nil
    }
    guard let target else { throw NotInTime("no connection") }
    return (client, target)
  }

  static func with(
    _ configuration: FaultyProxy.Configuration = .init(), faults: FaultyProxy.Faults = .none,
    _ body: (ProxyPair) async throws -> Void
  ) async throws {
    let (listener, port) = try TestSocket.listen()
    try await FaultyProxy.with(target: port, configuration: configuration) { proxy in
      proxy.set(faults)
      let (client, target) = try await connect(proxy, listener)
      try await body(
        ProxyPair(proxy: proxy, listener: listener, client: client, target: target))
    }
  }
}

extension TestSocket {
  /// Waits for so many bytes in all.
  func awaitBytes(_ count: Int) async throws {
    try await eventually("\(count) bytes") {
      look()
      return received.count >= count
    }
  }

  /// Waits for the end.
  func awaitEnd() async throws -> End? {
    try await eventually("the end of a connection") {
      look()
      return end != nil
    }
    return end
  }

  /// Sends all, as the kernel takes it, while somebody takes it in.
  func sendAll(_ bytes: [UInt8], whileReading other: TestSocket) async throws {
    var sent = 0
    try await eventually("all to be sent") {
      sent += send(Array(bytes[sent...].prefix(65_536)))
      other.look()
      return sent == bytes.count
    }
  }
}

/// Bytes that differ from their neighbours.
func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }

/// A plain TCP socket of loopback that never blocks: what it brought is looked at when a test looks.
final class TestSocket {
  /// How a connection ended.
  enum End {
    case closed, reset
  }

  private var descriptor: Int32
  /// Bytes that came.
  private(set) var received: [UInt8] = []
  /// How the other side ended it; nil: it has not.
  private(set) var end: End?

  private init(descriptor: Int32) {
    self.descriptor = descriptor
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
  }

  deinit { close() }

  func close() {
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  /// Sends no more.
  func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Sends what the kernel takes now, and says how many bytes that were.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Int {
    max(0, Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)))
  }

  /// Takes in what is there.
  func look() {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while end == nil {
      let count = recv(descriptor, &bytes, bytes.count, 0)
      if count > 0 {
        received += bytes.prefix(count)
      } else if count == 0 {
        end = .closed
      } else if errno == EAGAIN || errno == EINTR {
        return
      } else {
        end = .reset
      }
    }
  }

  /// Connects to a port.
  static func connect(_ port: Int) throws -> TestSocket {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    let result = withAddress(port) { Glibc.connect(descriptor, $0, $1) }
    guard result == 0 else {
      Glibc.close(descriptor)
      throw Refused()
    }
    return TestSocket(descriptor: descriptor)
  }

  /// Listens on a port that is free.
  static func listen() throws -> (socket: TestSocket, port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    let result = withAddress(0) { bind(descriptor, $0, $1) }
    guard result == 0, Glibc.listen(descriptor, 64) == 0 else { throw Refused() }
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &length)
      }
    }
    return (TestSocket(descriptor: descriptor), Int(UInt16(bigEndian: address.sin_port)))
  }

  /// A connection that waits at a listener; nil: none.
  func accept() -> TestSocket? {
    let accepted = Glibc.accept(descriptor, nil, nil)
    return accepted >= 0 ? TestSocket(descriptor: accepted) : nil
  }

  private static func withAddress<Result>(
    _ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }

  struct Refused: Error {}
}
