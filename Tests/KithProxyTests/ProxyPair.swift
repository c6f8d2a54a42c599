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
