internal import NIOCore
internal import NIOPosix
internal import Synchronization

extension FaultyProxy {
  private typealias Listener = NIOAsyncChannel<any Channel, Never>

  /// Runs a proxy during a call of `body`.
  ///
  /// When `body` returns or throws, or the task is cancelled, the port and all connections are
  /// closed before this returns.
  ///
  /// - Parameters:
  ///   - target: The port that connections are passed on to. It may be unused at first: a client
  ///     whose connection cannot be passed on is reset.
  ///   - configuration: The addresses and the limits.
  ///   - isolation: The actor that `body` runs on; the caller's.
  ///   - body: Called with the proxy, which serves already.
  /// - Returns: The result of `body`.
  /// - Throws: ``FaultyProxyError`` if the address cannot be listened on, the configuration is out
  ///   of bounds or the listening socket fails; otherwise the error of `body`.
  package static func with<Result>(
    target: Int, configuration: Configuration = Configuration(),
    isolation: isolated (any Actor)? = #isolation,
    _ body: (FaultyProxy) async throws -> Result
  ) async throws -> Result {
    try check(configuration, target: target)
    let waiting = AcceptedChannels()
    let listener = try await listen(configuration, waiting)
    let proxy = FaultyProxy(
      port: listener.channel.localAddress?.port ?? 0, target: target, configuration: configuration)
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await proxy.run(listener, waiting) }
      let result: Swift.Result<Result, any Error>
      do { result = .success(try await body(proxy)) } catch { result = .failure(error) }
      group.cancelAll()
      try await group.waitForAll()
      return try result.get()
    }
  }

  private static func check(
    _ configuration: Configuration, target: Int
  ) throws(FaultyProxyError) {
    func demand(_ isSo: Bool, _ message: String) throws(FaultyProxyError) {
      guard isSo else { throw FaultyProxyError(.invalidConfiguration, message) }
    }
    try demand((1...65_535).contains(target), "The target's port is from 1 to 65535.")
    try demand((0...65_535).contains(configuration.port), "A port is from 0 to 65535.")
    try demand(configuration.heldBytesLimit > 0, "heldBytesLimit is at least 1.")
    try demand(configuration.connectionLimit > 0, "connectionLimit is at least 1.")
    try demand(configuration.recordingLimitBytes >= 0, "recordingLimitBytes is at least 0.")
  }

  private static func listen(
    _ configuration: Configuration, _ waiting: AcceptedChannels
  ) async throws -> Listener {
    do {
      return try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .serverChannelOption(.backlog, value: 512)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
        .childChannelOption(.allowRemoteHalfClosure, value: true)
        .childChannelOption(.autoRead, value: false)
        .bind(host: configuration.host, port: configuration.port) { channel in
          waiting.insert(channel)
          return channel.eventLoop.makeSucceededFuture(channel)
        }
    } catch {
      throw FaultyProxyError(
        .cannotListen,
        "\(configuration.host) port \(configuration.port) cannot be listened on; give another.",
        cause: error)
    }
  }

  /// Makes a channel's bytes a sequence, and starts reading. The channel must not read before: a
  /// wrapped channel that is dropped traps (`NIOAsyncWriter` must be finished), so a channel that
  /// is not served is closed unwrapped.
  private static func wrap(_ channel: any Channel) async throws -> ProxyConnection.AsyncChannel {
    try await channel.eventLoop.submit {
      guard channel.isActive else { throw ChannelError.ioOnClosedChannel }
      let wrapped = try ProxyConnection.AsyncChannel(
        wrappingChannelSynchronously: channel,
        configuration: .init(isOutboundHalfClosureEnabled: true))
      channel.setOption(.autoRead, value: true).whenComplete { _ in }
      return wrapped
    }.get()
  }

  /// Serves until the task is cancelled.
  private func run(_ listener: Listener, _ waiting: AcceptedChannels) async throws {
    defer { waiting.closeAll() }
    do {
      try await listener.executeThenClose { clients in
        try await withThrowingDiscardingTaskGroup { group in
          for try await client in clients {
            waiting.remove(client)
            group.addTask { await self.serve(client) }
          }
          group.cancelAll()
        }
      }
    } catch  where !Task.isCancelled {
      throw FaultyProxyError(
        .listenerFailed, "The proxy's listening socket failed; start another.", cause: error)
    } catch {}
  }

  private func serve(_ channel: any Channel) async {
    guard let (number, connection) = register(channel) else {
      return ProxyConnection.reset(channel)
    }
    defer { state.withLock { _ = $0.connections.removeValue(forKey: number) } }
    guard let client = try? await Self.wrap(channel) else { return }
    await connection.serve(client) {
      let target = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .channelOption(.socketOption(.tcp_nodelay), value: 1)
        .channelOption(.allowRemoteHalfClosure, value: true)
        .channelOption(.autoRead, value: false)
        .bind(to: try SocketAddress(ipAddress: sourceHost, port: 0))
        .connect(host: configuration.targetHost, port: target).get()
      return try await Self.wrap(target)
    }
  }

  /// The source address of connections to the target; the wildcard lets the system choose.
  private var sourceHost: String {
    configuration.sourceHost ?? (configuration.targetHost.contains(":") ? "::" : "0.0.0.0")
  }

  /// Registers a connection under a number; nil if it is refused.
  private func register(_ client: any Channel) -> (number: Int, connection: ProxyConnection)? {
    state.withLock { state in
      let number = state.counters.accepted
      state.counters.accepted += 1
      guard !state.isCut, state.connections.count < configuration.connectionLimit else {
        state.counters.refused += 1
        return nil
      }
      func stream(_ direction: Direction) -> ProxyStream {
        let place = UInt64(number) << 2 | UInt64(direction.rawValue)
        var seeds = SplitMix64(state: configuration.seed ^ place &* 0x9E37_79B9_7F4A_7C15)
        return ProxyStream(
          faults: state.faults[direction.rawValue] ?? .none, seed: seeds.next(),
          limit: configuration.heldBytesLimit
        ) { self.count($0, corrupted: $1, direction) }
      }
      let connection = ProxyConnection(
        client: client, forward: stream(.forward), backward: stream(.backward),
        onReset: countReset)
      state.connections[number] = connection
      return (number, connection)
    }
  }
}

/// The connections that were accepted and are not served yet.
private final class AcceptedChannels: Sendable {
  private let channels = Mutex<[ObjectIdentifier: any Channel]>([:])

  func insert(_ channel: any Channel) {
    channels.withLock { $0[ObjectIdentifier(channel)] = channel }
  }

  func remove(_ channel: any Channel) {
    channels.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(channel)) }
  }

  func closeAll() {
    for channel in channels.withLock({ $0.values }) { channel.close(promise: nil) }
  }
}
