internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Serves the control socket while the node runs; see ``ControlRequest`` for the protocol.
final class ControlServer: Sendable {
  typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

  private let node: any StoreAccess
  private let path: String
  private let logger: Logger
  private let count = Mutex(0)

  init(node: any StoreAccess, path: String, logger: Logger) {
    self.node = node
    self.path = path
    self.logger = logger
  }

  /// Serves until the task is cancelled, then removes the socket.
  ///
  /// Throws ``KithError`` with `control` where the socket cannot be made.
  func run() async throws {
    let descriptor = try ControlSocket.listen(at: path)
    defer { ControlSocket.remove(path) }
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(descriptor) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandlers(
            LineHandler(), FirstLineTimeout())
          return try Connection(wrappingChannelSynchronously: channel)
        }
      }
    try await server.executeThenClose { connections in
      try await withThrowingDiscardingTaskGroup { group in
        for try await connection in connections {
          guard begin() else {
            connection.channel.close(promise: nil)
            group.addTask { try? await connection.executeThenClose { _, _ in } }
            continue
          }
          group.addTask {
            defer { self.end() }
            // A connection that breaks is its client's matter, not the node's.
            try? await self.serve(connection)
          }
        }
      }
    }
  }

  private func begin() -> Bool {
    count.withLock { count in
      guard count < ControlLimits.connections else { return false }
      count += 1
      return true
    }
  }

  private func end() { count.withLock { $0 -= 1 } }

  private func serve(_ connection: Connection) async throws {
    guard await ControlSocket.isSameUser(connection.channel) else {
      logger.info("another user was refused at the control socket")
      try await connection.executeThenClose { _, _ in }
      return
    }
    try await connection.executeThenClose { inbound, outbound in
      let session = ControlSession(node: node, channel: connection.channel, outbound: outbound)
      var lines = inbound.makeAsyncIterator()
      while let line = try await lines.next() {
        guard let request = ControlJSON.decode(ControlRequest.self, line) else { return }
        if request.operation == .watch {
          try await session.watch(request)
          return
        }
        if request.operation == .invite {
          // The answer to a candidate is the next line, so only one task reads.
          let (answers, continuation) = AsyncStream<Bool>.makeStream(
            bufferingPolicy: .bufferingNewest(1))
          async let done: Void = session.invite(request, answers: answers)
          if let answer = try await lines.next() {
            let decoded = ControlJSON.decode(ControlRequest.self, answer)
            continuation.yield(decoded?.isAccepted ?? false)
          }
          continuation.finish()
          try await done
          return
        }
        try await session.answer(request)
      }
    }
  }
}
