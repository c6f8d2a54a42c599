internal import KithCore
internal import KithNetwork
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Serves the control socket while the node runs; see ``NodeCall`` for the protocol.
final class LocalServer: EndsWithProcess {
  /// The kinds of connections, each with its own limit.
  enum Kind {
    case waiting
    case short
    case lasting
    case attached
  }

  typealias Job = @Sendable () async -> Void

  private struct State {
    var counts: [Kind: Int] = [:]
    var lastAttached: UInt64 = 0
    /// In order of arrival.
    var connections: [LocalConnection.Handle] = []
    var isOver = false
  }

  /// The event loop of the control socket alone: a program's long message must not delay the peers.
  private static let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  let node: Node
  let logger: Logger
  private let path: String
  private let state = Mutex(State())
  private let jobs: AsyncStream<Job>
  private let newJobs: AsyncStream<Job>.Continuation

  init(node: Node, path: String, logger: Logger) {
    self.node = node
    self.path = path
    self.logger = logger
    // At most `LocalLimits.unansweredRequests` jobs a connection, and one that follows the progress.
    (jobs, newJobs) = AsyncStream.makeStream()
  }

  /// Serves until the task is cancelled, then removes the socket. All accepted writes are durable
  /// then, and the programs know it.
  ///
  /// - Throws: ``KithError`` with `control` if the socket cannot be made.
  func run() async throws {
    ExitFlush.register(self)
    let descriptor = try LocalSocket.listen(at: path)
    defer { LocalSocket.remove(path) }
    let listener = try await ServerBootstrap(group: Self.loop)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ShortageHandler())
        }
      }
      // A connection is read only when its turn comes.
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandlers(
            ByteToMessageHandler(FrameDecoder(limit: LocalRequest.limit)),
            LocalConnection(server: self, channel: channel))
        }
      }
      .withBoundSocket(descriptor).get()
    await withDiscardingTaskGroup { group in
      for await job in jobs { group.addTask(operation: job) }
    }
    try? await listener.close()
    await sayGoodbye()
  }

  /// Performs a request on a task; after the end, drops it.
  func run(_ job: @escaping Job) { newJobs.yield(job) }

  /// Makes all accepted writes durable, says so, and closes the connections.
  private func sayGoodbye() async {
    let connections = state.withLock { state in
      state.isOver = true
      return state.connections
    }
    for connection in connections { try? await connection.stop().get() }
    let engine = node.engine
    let flushed: Void? = try? await BlockingThread.run { () throws(KithError) in
      try engine.flush()
    }
    await withDiscardingTaskGroup { group in
      for connection in connections {
        group.addTask { await connection.end(isDurable: flushed != nil) }
      }
    }
  }

  /// Tells attached programs that all is durable; the node is not closed.
  func endWithProcess() {
    let connections = state.withLock { state in
      state.isOver = true
      return state.connections
    }
    for connection in connections { try? connection.stop().wait() }
    guard (try? node.engine.flush()) != nil else { return }
    for connection in connections { try? connection.sayGoodbye().wait() }
  }

  // MARK: Capacity

  func add(_ connection: LocalConnection.Handle) {
    let isTooMany = state.withLock { state in
      guard !state.isOver, state.counts[.waiting, default: 0] < LocalLimits.waitingConnections
      else { return true }
      state.connections.append(connection)
      state.counts[.waiting, default: 0] += 1
      return false
    }
    if isTooMany { return connection.channel.close(promise: nil) }
    beginNext()
  }

  func remove(_ connection: LocalConnection.Handle, _ kind: Kind) {
    state.withLock { state in
      guard let index = state.connections.firstIndex(where: { $0 === connection }) else { return }
      state.connections.remove(at: index)
      state.counts[kind, default: 0] -= 1
    }
    beginNext()
  }

  /// Returns the connection's writer from now on; nil if the new kind is full.
  func move(from old: Kind, to new: Kind) -> WriteOrigin? {
    let limit =
      new == .attached ? LocalLimits.attachedConnections : LocalLimits.lastingConnections
    let origin = state.withLock { state -> WriteOrigin? in
      guard state.counts[new, default: 0] < limit else { return nil }
      state.counts[old, default: 0] -= 1
      state.counts[new, default: 0] += 1
      guard new == .attached else { return .attached(0) }
      state.lastAttached += 1
      return .attached(state.lastAttached)
    }
    if origin != nil { beginNext() }
    return origin
  }

  /// Starts the connection that has waited longest, if there is space.
  private func beginNext() {
    let next = state.withLock { state -> LocalConnection.Handle? in
      guard !state.isOver, state.counts[.short, default: 0] < LocalLimits.connections,
        let next = state.connections.first(where: { !$0.hasBegun.load(ordering: .relaxed) })
      else { return nil }
      next.hasBegun.store(true, ordering: .relaxed)
      state.counts[.waiting, default: 0] -= 1
      state.counts[.short, default: 0] += 1
      return next
    }
    next?.begin()
  }
}
