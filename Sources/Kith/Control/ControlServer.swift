internal import KithNetwork
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Serves the control socket while the node runs; see ``ControlRequest`` for the protocol.
final class ControlServer: Sendable {
  typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

  private let node: Node
  private let path: String
  private let logger: Logger
  private let counts = Mutex(Counts())

  /// What is under way.
  private struct Counts {
    var short = 0
    var lasting = 0
    var attached = 0
    /// Connections that are told that there is no room.
    var turnedAway = 0
    /// How many were ever attached.
    var lastAttached: UInt64 = 0
    /// Channels that were accepted and not closed; nil: none is accepted any more.
    var channels: [ObjectIdentifier: any Channel]? = [:]
  }

  init(node: Node, path: String, logger: Logger) {
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
    defer { closeAll() }
    counts.withLock { $0.channels = [:] }
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ShortageHandler())
        }
      }
      // Nothing is read before somebody takes the connection.
      .childChannelOption(.autoRead, value: false)
      .bind(descriptor) { channel in
        self.add(channel)
        return channel.eventLoop.makeSucceededFuture(channel)
      }
    try await server.executeThenClose { connections in
      try await withThrowingDiscardingTaskGroup { group in
        for try await channel in connections {
          let hasRoom = begin()
          guard hasRoom || beginTurningAway() else {
            channel.close(promise: nil)
            continue
          }
          group.addTask {
            defer { if !hasRoom { self.endTurningAway() } }
            // A connection that breaks is its client's matter, not the node's.
            guard let connection = try? await self.open(channel) else {
              if hasRoom { self.end() }
              return
            }
            if hasRoom {
              try? await self.serve(connection)
            } else {
              try? await self.turnAway(connection)
            }
          }
        }
      }
    }
  }

  /// Begins to read a connection. Not when it is accepted: one that comes while the server ends is
  /// dropped there, and NIO takes an async channel that is dropped for a mistake of the program. Nor
  /// does the client's time run before: a node with much to do may come to it late.
  private func open(_ channel: any Channel) async throws -> Connection {
    let connection = try await channel.eventLoop.submit {
      try channel.pipeline.syncOperations.addHandlers(LineHandler(), FirstLineTimeout())
      return try Connection(wrappingChannelSynchronously: channel)
    }.get()
    channel.setOption(.autoRead, value: true).whenFailure { _ in channel.close(promise: nil) }
    return connection
  }

  /// Keeps a channel, so that it is closed with the server even if nobody took it.
  private func add(_ channel: any Channel) {
    let id = ObjectIdentifier(channel)
    let isOver = counts.withLock { counts in
      counts.channels?[id] = channel
      return counts.channels == nil
    }
    if isOver { channel.close(promise: nil) }
    channel.closeFuture.whenComplete { _ in
      self.counts.withLock { _ = $0.channels?.removeValue(forKey: id) }
    }
  }

  private func closeAll() {
    let channels = counts.withLock { counts in
      defer { counts.channels = nil }
      return counts.channels ?? [:]
    }
    for channel in channels.values { channel.close(promise: nil) }
  }

  private func begin() -> Bool {
    counts.withLock { counts in
      guard counts.short < ControlLimits.connections else { return false }
      counts.short += 1
      return true
    }
  }

  private func end() { counts.withLock { $0.short -= 1 } }

  private func beginLasting() -> Bool {
    counts.withLock { counts in
      guard counts.lasting < ControlLimits.lastingConnections else { return false }
      counts.lasting += 1
      return true
    }
  }

  private func endLasting() { counts.withLock { $0.lasting -= 1 } }

  /// What tells an attached program's writes from those of others; nil: there is no room.
  private func beginAttached() -> WriteOrigin? {
    counts.withLock { counts in
      guard counts.attached < ControlLimits.attachedConnections else { return nil }
      counts.attached += 1
      counts.lastAttached += 1
      return .guest(counts.lastAttached)
    }
  }

  private func endAttached() { counts.withLock { $0.attached -= 1 } }

  private func beginTurningAway() -> Bool {
    counts.withLock { counts in
      guard counts.turnedAway < ControlLimits.turnedAwayConnections else { return false }
      counts.turnedAway += 1
      return true
    }
  }

  private func endTurningAway() { counts.withLock { $0.turnedAway -= 1 } }

  /// Says that there is no room, and closes the connection.
  private func turnAway(_ connection: Connection) async throws {
    let channel = connection.channel
    try await connection.executeThenClose { inbound, outbound in
      let session = ControlSession(node: node, channel: channel, outbound: outbound)
      try await session.refuse(
        0, "\(ControlLimits.connections) commands are under way already. Try again.")
      // Open for a moment more: a client that is just sending would fail at that before it reads why.
      let farewell = channel.eventLoop.scheduleTask(
        in: .milliseconds(ControlLimits.farewellMilliseconds)
      ) {
        channel.close(promise: nil)
      }
      defer { farewell.cancel() }
      var lines = inbound.makeAsyncIterator()
      _ = try await lines.next()
    }
  }

  /// Serves a connection that was counted as a short one.
  private func serve(_ connection: Connection) async throws {
    var isShort = true
    defer { if isShort { end() } }
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
        guard request.operation?.isLasting == true else {
          try await session.answer(request)
          continue
        }
        if request.operation == .attach {
          guard let origin = beginAttached() else {
            try await session.refuse(
              request.id,
              "\(ControlLimits.attachedConnections) programs are attached already. End one, or give "
                + "this one a device of its own.")
            return
          }
          defer { endAttached() }
          end()
          isShort = false
          try await session.attach(request, origin, &lines)
          return
        }
        guard beginLasting() else {
          try await session.refuse(
            request.id,
            "\(ControlLimits.lastingConnections) programs watch, invite or wait already. End one, "
              + "such as a kith watch.")
          return
        }
        defer { endLasting() }
        end()
        isShort = false
        if request.operation == .invite {
          try await invite(request, session, &lines)
        } else if request.operation == .watch {
          try await session.watch(request)
        } else {
          try await session.answerWhileConnected(request)
        }
        return
      }
    }
  }

  /// Invites until that is done, or the client is gone.
  private func invite(
    _ request: ControlRequest, _ session: ControlSession,
    _ lines: inout NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  ) async throws {
    let (answers, continuation) = AsyncStream<Bool>.makeStream(bufferingPolicy: .bufferingNewest(1))
    defer { continuation.finish() }
    // The session closes the connection when it is done. Where the connection ends before, this
    // returns, which cancels the invitation.
    async let _: Void = session.invite(request, answers: answers)
    // The answer to a candidate is the next line, so only one task reads.
    while let answer = try await lines.next() {
      let decoded = ControlJSON.decode(ControlRequest.self, answer)
      continuation.yield(decoded?.isAccepted ?? false)
    }
  }
}
