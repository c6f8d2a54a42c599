package import KithCore
internal import KithCrypto
internal import KithNetwork
internal import KithStorage
internal import ServiceLifecycle
internal import Synchronization

/// One device of an account in this process: its directory, its stores, its peers.
///
/// ```swift
/// let node = try await Node.open(.init(directory: directory))
/// let store = try node.store("com.example.App")
/// try await node.run()
/// ```
/// A node that does not run still writes durably, and publishes these writes once it runs and meets
/// a peer.
package final class Node: Sendable {
  /// For the device of one directory.
  package typealias Configuration = Accounts.Configuration

  package let configuration: Configuration
  package let account: AccountID
  package let device: DeviceID

  let engine: Engine
  let opened: OpenDevice
  let staticPeers: [PeerAddress]
  let listening = Mutex<[PeerAddress]>([])
  let transport = Mutex<Transport?>(nil)
  let discovery = Mutex<Discovery?>(nil)
  let yielding = Mutex(Yielding.refused)
  let carriers = Mutex<CarrierRunner?>(nil)
  let carrierList: CarrierList
  /// A thread each may hold the last that the system has.
  let blockingRequests = TaskQueue(limit: LocalLimits.blockingRequests)

  init(
    configuration: Configuration, engine: Engine, opened: OpenDevice, staticPeers: [PeerAddress]
  ) {
    self.configuration = configuration
    self.engine = engine
    self.opened = opened
    self.staticPeers = staticPeers
    account = engine.account
    device = engine.keys.id
    carrierList = CarrierList(opened.storage)
  }

  /// Opens the device of a directory, and locks the directory until ``close()``.
  ///
  /// - Throws: ``KithError`` with `missing`, `inUse`, `passphrase`,
  ///   `unsafePermissions`, `damaged`, `newerSchema`, `notAMember`, `network` for a malformed peer
  ///   or too many, or another storage code.
  package static func open(_ configuration: Configuration) async throws(KithError) -> Node {
    try await BlockingThread.run { () throws(KithError) in try Node(opening: configuration) }
  }

  /// Blocks while the disk works.
  convenience init(opening configuration: Configuration) throws(KithError) {
    let peers = try Self.peerAddresses(configuration.peers)
    let opened = try DeviceStorage.open(
      configuration.directory, configuration.passphrase, isForReading: configuration.isForReading)
    do throws(KithError) {
      let engine = try Self.engine(of: opened, configuration)
      ExitFlush.register(engine)
      self.init(configuration: configuration, engine: engine, opened: opened, staticPeers: peers)
      if let rebuilt = opened.rebuilt { engine.log(LogLine(rebuilt)) }
      try loadCarriers()
    } catch {
      try? opened.close()
      throw error
    }
  }

  /// A damaged list stops no node; a disk that cannot be read does, or the next change of the list
  /// would lose the rest of it.
  private func loadCarriers() throws(KithError) {
    do throws(StorageError) {
      try carrierList.load()
    } catch {
      guard error.code == .damaged else { throw KithError(error) }
      engine.log(LogLine(.carriersUnread, ["reason": "\(error)"]))
    }
  }

  private static func engine(
    of opened: OpenDevice, _ configuration: Configuration
  ) throws(KithError) -> Engine {
    let account = try DeviceStorage.account(of: opened)
    var entropy = SystemRandom()
    let engine = try Engine(
      account: account, keys: opened.keys, process: ProcessID(entropy.draw()),
      storage: configuration.readsMembershipOnly
        ? MembershipStorage(opened.storage) : opened.storage,
      logger: configuration.logger, boot: SystemClock.boot)
    if let keepsHistory = configuration.keepsHistory, !configuration.readsMembershipOnly {
      engine.input(.keepHistory(keepsHistory))
    }
    return engine
  }

  /// A store of the account, created if it is new. The policy must be the same on all devices.
  ///
  /// - Throws: ``KithError`` with `invalidStoreIdentifier`, `invalidPolicy`, `closed` or a storage
  ///   code.
  package func store(
    _ identifier: String, policy: Policy = .standard
  ) throws(KithError) -> KeyValueStore {
    let name = try Self.checked(identifier, policy)
    return KeyValueStore(service: engine, view: try engine.open(name, policy: policy))
  }

  package static func checked(
    _ identifier: String, _ policy: Policy
  ) throws(KithError) -> StoreIdentifier {
    guard let name = StoreIdentifier(identifier) else {
      throw KithError(
        .invalidStoreIdentifier,
        "A store identifier has 1 to \(StoreIdentifier.maximumBytes) bytes of UTF-8 and no control "
          + "characters.")
    }
    guard policy.isWithinBounds else {
      throw KithError(
        .invalidPolicy, "The limits are above Policy.maximum, or negative. Lower them.")
    }
    return name
  }

  /// Makes everything durable, ends all sequences and unlocks the directory.
  ///
  /// - Throws: ``KithError`` with `alreadyRunning` while the node runs. With a storage code if
  ///   something is not durable; the node is closed all the same.
  package func close() throws(KithError) {
    guard !engine.state.withLock({ $0.isRunning }) else {
      throw KithError(.alreadyRunning, "The node runs. Cancel run() first.")
    }
    defer { try? opened.close() }
    try engine.close()
  }
}

extension Node {
  /// Listens, dials and exchanges changes, until the task is cancelled or its service group shuts
  /// down. Then it makes accepted writes durable and sends them; sessions wait 2 s for it at most. It
  /// may run again. If `onAnyPort`, it falls back to any port if its own is taken. `onServing` is
  /// called once it listens.
  ///
  /// - Throws: ``KithError`` with `alreadyRunning` or `closed`, or `network` if it cannot listen on
  ///   an address.
  package func run(
    onAnyPort: Bool = false, onServing: @escaping @Sendable () -> Void = {}
  ) async throws {
    let sessions = NodeSessions(engine: engine)
    guard engine.beginRunning(transport: sessions) else {
      throw KithError(.alreadyRunning, "The node runs already, or was closed.")
    }
    // Before any peer is met, because it decides whose time counts.
    engine.updateClockStatus()
    async let writer: Void = engine.runWriter()
    let ended = await Result(awaiting: {
      try await cancelWhenGracefulShutdown {
        try await self.serve(sessions, onAnyPort: onAnyPort, onServing: onServing)
      }
    })
    await finishCarriers()
    engine.stopWriter()
    await writer
    do { try ended.get() } catch is CancellationError {}
  }

  /// Commits accepted writes and hands them to the sessions; gives up if storage takes too long. In a
  /// task of its own, because this one was cancelled.
  private func finishWrites() async {
    await Task {
      await race([
        { _ = await BlockingThread.runUntilCancelled { try? self.engine.flush() } },
        { try? await Task.sleep(for: ExitFlush.longestWait) },
      ])
    }.value
  }

  /// A last turn on each carrier: other devices may be on only while this one is off. In a task of its
  /// own, because this one was cancelled.
  private func finishCarriers() async {
    guard let runner = carriers.withLock({ $0.take() }) else { return }
    await Task { await runner.finish() }.value
  }

  private func serve(
    _ sessions: NodeSessions, onAnyPort: Bool, onServing: @Sendable () -> Void
  ) async throws {
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
    // Before others can add targets, so that the limit never refuses these.
    for peer in staticPeers { transport.addTarget(peer) }
    self.transport.withLock { $0 = transport }
    defer { self.transport.withLock { $0 = nil } }
    listening.withLock { $0 = bound }
    defer { listening.withLock { $0 = [] } }
    engine.progress.raise()
    sessions.setAddresses(engine.read { $0.memberAddresses }.filter { $0.key != device })
    configuration.logger.info("the node serves", metadata: ["listening": "\(bound)"])
    onServing()
    let discovery = makeDiscovery(transport, sessions, bound)
    self.discovery.withLock { $0 = discovery }
    defer { self.discovery.withLock { $0 = nil } }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await transport.run { await self.finishWrites() } }
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

extension Node {
  /// Whether the program gives the directory to a node that insists on it.
  enum Yielding {
    case refused
    case offered(onRequest: @Sendable () -> Void)
    case requested
  }

  /// Whether the program is to close the node, so that another process can open the directory.
  var isYielding: Bool {
    yielding.withLock { if case .requested = $0 { true } else { false } }
  }

  /// Asks the program to close the node.
  ///
  /// - Throws: ``KithError`` with `inUse` if the program insists on the directory.
  func yield() throws(KithError) {
    let request = try yielding.withLock { yielding throws(KithError) -> (@Sendable () -> Void)? in
      switch yielding {
      case .refused:
        throw KithError(
          .inUse, "The directory's node stays. Stop it first.", path: configuration.directory)
      case .offered(let onRequest):
        yielding = .requested
        return onRequest
      case .requested: return nil
      }
    }
    request?()
  }
}
