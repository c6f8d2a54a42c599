internal import KithCore
internal import KithNetwork
internal import ServiceLifecycle

extension Node {
  /// Listens, dials and exchanges changes, until the task is cancelled or its service group shuts
  /// down. Then it makes accepted writes durable and sends them. It may run again. If `onAnyPort`,
  /// it falls back to any port if its own is taken.
  ///
  /// - Throws: ``KithError`` with `alreadyRunning` or `closed`, or `network` if it cannot listen on
  ///   an address.
  package func run(onAnyPort: Bool = false) async throws {
    let sessions = NodeSessions(engine: engine)
    guard engine.beginRunning(link: sessions) else {
      throw KithError(.alreadyRunning, "The node runs already, or was closed.")
    }
    // Before any peer is met, because it decides whose time counts.
    engine.updateClockStatus()
    async let writer: Void = engine.runWriter()
    let ended = await Result(awaiting: {
      try await cancelWhenGracefulShutdown { try await self.serve(sessions, onAnyPort: onAnyPort) }
    })
    await finishCarriers()
    engine.stopWriter()
    await writer
    do { try ended.get() } catch is CancellationError {}
  }

  /// A last turn on each carrier: other devices may be on only while this one is off. In a task of its
  /// own, because this one was cancelled.
  private func finishCarriers() async {
    guard let runner = carriers.withLock({ $0.take() }) else { return }
    await Task { await runner.finish() }.value
  }

  private func serve(_ sessions: NodeSessions, onAnyPort: Bool) async throws {
    var transportConfiguration = TransportConfiguration()
    transportConfiguration.hosts = configuration.hosts
    transportConfiguration.port = configuration.port
    let transport = Transport(
      configuration: transportConfiguration, keys: engine.keys, delegate: sessions,
      logger: configuration.logger)
    sessions.setTransport(transport)
    defer { sessions.setTransport(nil) }
    let bound = try await bind(transport, onAnyPort: onAnyPort)
    sessions.setPort(bound.first?.port ?? 0)
    // Before others can add some, so that these have their place.
    for peer in staticPeers { transport.addTarget(peer) }
    self.transport.withLock { $0 = transport }
    defer { self.transport.withLock { $0 = nil } }
    listening.withLock { $0 = bound }
    defer { listening.withLock { $0 = [] } }
    engine.progress.raise()
    sessions.setAddresses(engine.read { $0.memberAddresses }.filter { $0.key != device })
    configuration.logger.info("the node serves", metadata: ["listening": "\(bound)"])
    let discovery = makeDiscovery(transport, sessions, bound)
    self.discovery.withLock { $0 = discovery }
    defer { self.discovery.withLock { $0 = nil } }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await transport.run() }
      if let discovery { group.addTask { await discovery.run() } }
      group.addTask { await self.engine.logStatusChanges { self.status } }
      if let open = configuration.carriers {
        let runner = CarrierRunner(
          engine: engine, list: carrierList, open: open)
        self.carriers.withLock { $0 = runner }
        group.addTask { await runner.run() }
      }
      if configuration.servesControlSocket {
        let server = LocalServer(
          node: self, path: opened.controlSocketPath, logger: configuration.logger)
        group.addTask { try await server.run() }
      }
      // The first task that ends cancels the rest.
      defer { group.cancelAll() }
      _ = try await group.next()
    }
  }

  private func makeDiscovery(
    _ transport: Transport, _ sessions: NodeSessions, _ bound: [PeerAddress]
  ) -> Discovery? {
    guard configuration.discoversPeers else { return nil }
    // Other hosts cannot reach a node that listens only on loopback.
    let isLoopbackOnly =
      !bound.isEmpty && bound.allSatisfy { LocalAddresses.isLoopback($0.host) }
    return Discovery(
      transport: transport, account: account, port: bound.first?.port ?? 0,
      link: LinkMulticast(
        port: NetworkLimits.discoveryPort, datagramBytes: Beacon.byteCount,
        isLoopbackOnly: isLoopbackOnly, logger: configuration.logger),
      delegate: sessions)
  }

  private func bind(
    _ transport: Transport, onAnyPort: Bool
  ) async throws -> [PeerAddress] {
    guard !configuration.hosts.isEmpty else { return [] }
    do {
      do {
        return try await transport.bind()
      } catch let failure as NetworkFailure where onAnyPort && failure.reason == .portTaken {
        let bound = try await transport.bind(port: 0)
        configuration.logger.warning(
          "the port is taken, another is used",
          metadata: ["port": "\(configuration.port)", "used": "\(bound.first?.port ?? 0)"])
        return bound
      }
    } catch let failure as NetworkFailure {
      throw KithError(listening: failure)
    }
  }

  /// The addresses, as `host:port`, at which the node listens now.
  package var listeningAddresses: [String] { listening.withLock { $0.map(\.description) } }
}
