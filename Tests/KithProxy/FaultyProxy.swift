internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// A TCP proxy with the faults of bad networks, between real programs, on demand and repeatable.
///
/// It listens on a port of loopback and passes each connection on to a target's port. Configure
/// programs with the proxy's port instead of the target's. Faults can be changed while the programs
/// run, separately for each direction:
///
/// ```swift
/// try await FaultyProxy.with(target: serverPort) { proxy in
///   // … start a client that dials 127.0.0.1:proxy.port …
///   proxy.set(.init(delay: .milliseconds(50)))                       // a distant peer
///   proxy.set(.init(isStalled: true), direction: .forward)           // a one-way partition
///   proxy.set(.init(corruption: .every(10_000)), direction: .backward)
///   proxy.cut()                                                      // all connections are reset
///   proxy.mend()                                                     // no fault any more
/// }
/// ```
///
/// | fault | call |
/// | --- | --- |
/// | delay, throttle, corruption, loss by reset, one-way or two-way partition | ``set(_:direction:)`` with ``Faults`` |
/// | all connections break, and no new one is served | ``cut()`` |
/// | all connections break, new ones are served | ``reset()`` |
/// | half-open: nothing passes, and neither side ever learns | ``abandon()`` |
/// | no fault any more | ``mend()`` |
///
/// **Repeatable.** All choices follow from ``Configuration/seed``: connection 3 has the same bytes
/// altered in each run. The timing depends on the programs.
///
/// **Bounded.** Each direction of each connection holds at most ``Configuration/heldBytesLimit``
/// bytes, and a read or two; beyond that the sender is blocked. Connections above
/// ``Configuration/connectionLimit`` are reset.
///
/// All methods may be called from any thread, and take effect without being awaited.
package final class FaultyProxy: Sendable {
  /// The addresses and the limits of a proxy.
  package struct Configuration: Sendable, Hashable {
    /// The address to listen on.
    package var host = "127.0.0.1"
    /// The port to listen on; 0: any that is free.
    package var port = 0
    /// The target's address.
    package var targetHost = "127.0.0.1"
    /// The source address of connections to the target; nil: the system chooses.
    ///
    /// A program may dial back to a peer's source address, as Kith's nodes do, and bypass
    /// the proxy. To prevent this, choose another loopback address without a listener, such
    /// as `127.0.0.9`.
    package var sourceHost: String?
    /// The seed of all random choices.
    package var seed: UInt64 = 0
    /// The number of bytes kept for ``FaultyProxy/recorded(_:)`` in each direction, over all
    /// connections; 0: none.
    package var recordingLimitBytes = 0
    /// The number of bytes that may wait in each direction of a connection; at least 1.
    package var heldBytesLimit = 1 << 20
    /// The number of connections that may be open; at least 1.
    package var connectionLimit = 4_096

    /// The defaults.
    package init() {}
  }

  /// The counters of a proxy.
  package struct Counters: Sendable, Hashable {
    /// Connections from clients.
    package var accepted = 0
    /// Connections open now, including abandoned ones.
    package var open = 0
    /// Connections that were reset at once, because the proxy was cut or had too many.
    package var refused = 0
    /// Connections that were reset by a fault, ``FaultyProxy/cut()`` or ``FaultyProxy/reset()``.
    package var reset = 0
    /// Bytes that were passed to the target.
    package var forwardBytes = 0
    /// Bytes that were passed back from the target.
    package var backwardBytes = 0
    /// Altered bytes of both directions.
    package var corruptedBytes = 0
  }

  struct State {
    var faults: [Direction.RawValue: Faults] = [:]
    var isCut = false
    var connections: [Int: ProxyConnection] = [:]
    var counters = Counters()
    var recordings: [Direction.RawValue: [UInt8]] = [:]
  }

  /// The port that the proxy listens on.
  package let port: Int
  let target: Int
  let configuration: Configuration
  let state = Mutex(State())

  init(port: Int, target: Int, configuration: Configuration) {
    (self.port, self.target, self.configuration) = (port, target, configuration)
  }

  // MARK: Faults

  /// Sets the faults of a direction, in place of earlier ones.
  ///
  /// They apply to all bytes that have not passed yet, on open and on new connections.
  ///
  /// - Complexity: O(*n*) in the open connections.
  package func set(_ faults: Faults, direction: Direction = .both) {
    let connections = state.withLock { state in
      for one in [Direction.forward, .backward] where direction.contains(one) {
        state.faults[one.rawValue] = faults
      }
      return state.connections.values
    }
    for connection in connections {
      if direction.contains(.forward) { connection.forward.set(faults) }
      if direction.contains(.backward) { connection.backward.set(faults) }
    }
  }

  /// Resets all connections, and every new one at once, until ``mend()``.
  ///
  /// The proxy keeps its port, so that no other program takes it. A new connection is therefore
  /// accepted and then reset (RST), instead of refused.
  package func cut() {
    state.withLock { $0.isCut = true }
    reset()
  }

  /// Resets all connections except abandoned ones. New ones are served.
  package func reset() {
    for connection in state.withLock({ $0.connections.values }) where connection.reset() {
      countReset()
    }
  }

  /// Leaves all open connections half-open until the proxy ends: nothing passes in either
  /// direction, and neither side learns of it, even if the other side closes.
  ///
  /// New connections are served.
  package func abandon() {
    for connection in state.withLock({ $0.connections.values }) { connection.abandon() }
  }

  /// Ends all faults and a cut. Held bytes pass. Abandoned connections stay abandoned.
  package func mend() {
    state.withLock { $0.isCut = false }
    set(.none)
  }

  // MARK: Passed bytes

  /// The counters so far.
  package var counters: Counters {
    state.withLock { state in
      var counters = state.counters
      counters.open = state.connections.count
      return counters
    }
  }

  /// Returns the first bytes that passed in a direction, connections mixed, up to
  /// ``Configuration/recordingLimitBytes`` for each direction.
  ///
  /// For both directions, forward comes first.
  ///
  /// - Complexity: O(*n*) in the bytes.
  package func recorded(_ direction: Direction) -> [UInt8] {
    state.withLock { state in
      [Direction.forward, .backward].filter(direction.contains).flatMap {
        state.recordings[$0.rawValue] ?? []
      }
    }
  }

  func countReset() {
    state.withLock { $0.counters.reset += 1 }
  }

  func count(_ bytes: ByteBuffer, corrupted: Int, _ direction: Direction) {
    state.withLock { state in
      if direction == .forward {
        state.counters.forwardBytes += bytes.readableBytes
      } else {
        state.counters.backwardBytes += bytes.readableBytes
      }
      state.counters.corruptedBytes += corrupted
      let room =
        configuration.recordingLimitBytes - (state.recordings[direction.rawValue]?.count ?? 0)
      if room > 0 {
        state.recordings[direction.rawValue, default: []] += bytes.readableBytesView.prefix(room)
      }
    }
  }
}

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
  /// Nil: the proxy has ended.
  private let channels = Mutex<[ObjectIdentifier: any Channel]?>([:])

  /// A channel that was accepted before the end is made on its own event loop, perhaps after it.
  func insert(_ channel: any Channel) {
    let isOpen = channels.withLock { channels in
      channels?[ObjectIdentifier(channel)] = channel
      return channels != nil
    }
    if !isOpen { channel.close(promise: nil) }
  }

  func remove(_ channel: any Channel) {
    channels.withLock { _ = $0?.removeValue(forKey: ObjectIdentifier(channel)) }
  }

  func closeAll() {
    for channel in channels.withLock({ $0.take() })?.values.map(\.self) ?? [] {
      channel.close(promise: nil)
    }
  }
}

/// The error of a ``FaultyProxy`` that could not start, or stopped.
package struct FaultyProxyError: Error, CustomStringConvertible {
  /// The kind of error; kinds may be added.
  package struct Code: Sendable, Hashable, CustomStringConvertible {
    /// The code's name.
    package let description: String

    /// The address cannot be listened on: the port is taken, or the host is not of this computer.
    package static let cannotListen = Code(description: "cannotListen")
    /// The configuration is out of bounds.
    package static let invalidConfiguration = Code(description: "invalidConfiguration")
    /// The listening socket failed while the proxy served.
    package static let listenerFailed = Code(description: "listenerFailed")
  }

  /// The kind of error.
  package let code: Code
  /// The cause and the remedy.
  package let message: String
  /// The system's error.
  package let cause: (any Error)?

  /// The code, the message and the cause.
  package var description: String {
    "\(code): \(message)\(cause.map { " (\($0))" } ?? "")"
  }

  init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    (self.code, self.message, self.cause) = (code, message, cause)
  }
}
