internal import Glibc
internal import NIOCore
internal import NIOPosix

enum Bootstraps {
  /// The event loops of all connections.
  static let group = MultiThreadedEventLoopGroup.singleton

  /// Linux's `TCP_USER_TIMEOUT`, in milliseconds.
  private static let userTimeout = ChannelOptions.Types.SocketOption(
    level: .tcp, name: .init(rawValue: 18))

  /// Linux's `TCP_KEEPIDLE` and `TCP_KEEPINTVL`, in seconds: before the first probe, and between
  /// probes.
  private static let keepAliveIdle = ChannelOptions.Types.SocketOption(
    level: .tcp, name: .init(rawValue: 4))
  private static let keepAliveInterval = ChannelOptions.Types.SocketOption(
    level: .tcp, name: .init(rawValue: 5))

  private static let onlyIPv6 = ChannelOptions.Types.SocketOption(
    level: .ipv6, name: .ipv6_v6only)

  /// Listens on all hosts at one port (0: any), or on none. Without IPv6, `::` means `0.0.0.0`.
  ///
  /// `initialize` is called for each connection on its event loop; throwing closes it. `onShortage`
  /// is called when accepting pauses for want of resources.
  static func bind(
    hosts: [String], port: UInt16,
    userTimeout: Duration = NetworkLimits.userTimeout,
    onShortage: @escaping @Sendable (IOError) -> Void = { _ in },
    initialize: @escaping @Sendable (any Channel) throws -> Void
  ) async throws(NetworkFailure) -> [any Channel] {
    var bound: [any Channel] = []
    var port = Int(port)
    func bind(_ host: String) async throws(NetworkFailure) {
      do {
        let server = server(
          host: host, userTimeout: userTimeout, onShortage: onShortage, initialize: initialize)
        let address = SocketAddress.literal(host, port: port)
        bound.append(
          try await (address.map { server.bind(to: $0) } ?? server.bind(host: host, port: port))
            .get())
      } catch {
        throw NetworkFailure(listeningOn: host, port: port, error)
      }
    }
    do throws(NetworkFailure) {
      for host in hosts {
        do throws(NetworkFailure) {
          try await bind(host)
        } catch  where host == "::" && [.unsupported, .notLocal].contains(error.reason) {
          try await bind("0.0.0.0")
        }
        port = bound.last?.localAddress?.port ?? port
      }
    } catch {
      for channel in bound { try? await channel.close() }
      throw error
    }
    return bound
  }

  private static func server(
    host: String, userTimeout: Duration, onShortage: @escaping @Sendable (IOError) -> Void,
    initialize: @escaping @Sendable (any Channel) throws -> Void
  ) -> ServerBootstrap {
    let bootstrap = ServerBootstrap(group: group)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ShortageHandler(onShortage: onShortage))
        }
      }
      .serverChannelOption(.backlog, value: NetworkLimits.backlog)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(
        .recvAllocator,
        value: FixedSizeRecvByteBufferAllocator(capacity: NetworkLimits.handshakeBytes)
      )
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try setOptions(channel, userTimeout: userTimeout)
          try initialize(channel)
        }
      }
    guard host == "::" else { return bootstrap }
    return bootstrap.serverChannelOption(onlyIPv6, value: 0)
  }

  /// Connects to the first of a name's addresses that accepts, and adds a handler on the event
  /// loop. Fails with a ``NetworkFailure``.
  ///
  /// `admit` prevents a connection by throwing.
  static func connect(
    to address: PeerAddress, connectTimeout: Duration = NetworkLimits.connectTimeout,
    userTimeout: Duration = NetworkLimits.userTimeout,
    admit: @escaping @Sendable (any Channel) throws -> Void = { _ in },
    handler: @escaping @Sendable () throws -> any ChannelHandler
  ) -> EventLoopFuture<any Channel> {
    let bootstrap = ClientBootstrap(group: group)
      .connectTimeout(TimeAmount(connectTimeout))
      .channelOption(.maxMessagesPerRead, value: 1)
      .channelOption(
        .recvAllocator,
        value: FixedSizeRecvByteBufferAllocator(capacity: NetworkLimits.handshakeBytes)
      )
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try setOptions(channel, userTimeout: userTimeout)
          try admit(channel)
        }
      }
    let port = Int(address.port)
    let connected =
      SocketAddress.literal(address.host, port: port).map { bootstrap.connect(to: $0) }
      ?? bootstrap.connect(host: address.host, port: port)
    return connected.flatMap { channel in
      channel.eventLoop.submit {
        do {
          try channel.pipeline.syncOperations.addHandler(handler())
        } catch {
          channel.close(promise: nil)
          throw error
        }
        return channel
      }
    }
    .flatMapErrorThrowing { throw NetworkFailure(connectingTo: address, $0) }
  }

  /// While probing, the kernel asks the other end each second, and closes after
  /// ``NetworkLimits/probeTime`` without an answer.
  static func setPatience(
    of channel: any Channel, isProbing: Bool, userTimeout: Duration = NetworkLimits.userTimeout
  ) throws {
    guard let options = channel.syncOptions else { return }
    try options.setOption(keepAliveIdle, value: isProbing ? 1 : 7_200)
    try options.setOption(keepAliveInterval, value: isProbing ? 1 : 75)
    try setUserTimeout(isProbing ? NetworkLimits.probeTime : TimeAmount(userTimeout), options)
  }

  private static func setOptions(_ channel: any Channel, userTimeout: Duration) throws {
    guard let options = channel.syncOptions else { return }
    try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
    try options.setOption(.socketOption(.so_keepalive), value: 1)
    try options.setOption(
      .writeBufferWaterMark,
      value: .init(low: NetworkLimits.lowWaterBytes, high: NetworkLimits.highWaterBytes))
    try setUserTimeout(TimeAmount(userTimeout), options)
  }

  private static func setUserTimeout(
    _ time: TimeAmount, _ options: any NIOSynchronousChannelOptions
  ) throws {
    try options.setOption(userTimeout, value: Int(clamping: time.nanoseconds / 1_000_000))
  }
}

extension PeerAddress {
  init(bound channel: any Channel) throws(PeerAddressError) {
    let address = channel.localAddress
    try self.init(
      host: IPAddressText.host(of: address) ?? "::", port: UInt16(clamping: address?.port ?? 0))
  }
}

extension NetworkFailure {
  /// Tries to listen, and returns the failure, if any.
  package static func listening(on hosts: [String] = ["::"], port: UInt16) async -> Self? {
    do throws(NetworkFailure) {
      let bound = try await Bootstraps.bind(hosts: hosts, port: port) { _ in
        throw TransportError.shutDown
      }
      for channel in bound { try? await channel.close() }
      return nil
    } catch {
      return error
    }
  }
}
