package import KithCore
package import KithCrypto
package import Logging
internal import NIOCore
internal import Synchronization

/// Sessions between the devices of an account, over TCP (`Docs/Protocol.md`, "Handshake").
///
/// All work is within ``run()``. Other methods may be called from any thread.
package final class Transport: Sendable {
  let configuration: TransportConfiguration
  let keys: DeviceKeys
  let delegate: any TransportDelegate
  let gate: Gate
  let dialler: Dialler
  let registry: Mutex<SessionRegistry>
  let channels = ChannelTable()
  let parameters: NoiseParameters
  let entropy = SharedEntropy(SystemRandom())
  private let logger: Logger
  private let listeners = Mutex<[any Channel]>([])
  private let lastShortage = Mutex<NIODeadline?>(nil)

  /// Makes a transport that is not running yet.
  ///
  /// `delegate` is held strongly. The log never holds keys of stores, values or secrets.
  package init(
    configuration: TransportConfiguration, keys: DeviceKeys, delegate: any TransportDelegate,
    logger: Logger
  ) {
    self.configuration = configuration
    self.keys = keys
    self.delegate = delegate
    self.logger = logger
    gate = Gate(
      limit: NetworkLimits.halfOpen, limitPerAddress: NetworkLimits.halfOpenPerAddress)
    registry = Mutex(SessionRegistry(limit: configuration.sessionLimit))
    parameters = NoiseParameters(
      prologue: NoiseParameters.sessionPrologue, keys: keys, entropy: entropy)
    dialler = Dialler(configuration: configuration, entropy: entropy)
  }

  // MARK: Serving

  /// Starts to listen.
  ///
  /// - Parameter port: Replaces the configured port; 0: any.
  /// - Returns: The addresses with their ports.
  /// - Throws: ``NetworkFailure`` if a host cannot be bound; then none is.
  @discardableResult
  package func bind(port: UInt16? = nil) async throws -> [PeerAddress] {
    let bound = try await Bootstraps.bind(
      hosts: configuration.hosts, port: port ?? configuration.port,
      onShortage: { self.noteShortage($0) }
    ) { try self.accept($0) }
    listeners.withLock { $0 += bound }
    return try bound.map { try PeerAddress(bound: $0) }
  }

  /// Serves and dials until the task is cancelled; then calls `finish` while the sessions last, ends
  /// them after what was sent, closes everything, and reports the end of every session.
  ///
  /// Binds first if ``bind(port:)`` was not called. Throws if that fails or a listener ends.
  package func run(finishing finish: @Sendable () async -> Void = {}) async throws {
    if listeners.withLock({ $0.isEmpty }) { try await bind() }
    let (ended, continuation) = AsyncStream<Never>.makeStream()
    for listener in listeners.withLock({ $0 }) {
      listener.closeFuture.whenComplete { _ in continuation.finish() }
    }
    dialler.start(
      { [weak self] dials, surplus in
        for session in surplus { self?.close(session, reason: .surplus) }
        for dial in dials { self?.connect(dial) }
      },
      onEnd: { [weak self] in self?.delegate.dialEnded() })
    logger.debug("transport serves", metadata: ["hosts": "\(configuration.hosts)"])
    for await _ in ended {}
    let isCancelled = Task.isCancelled
    await finish()
    await shutDown()
    if !isCancelled { throw TransportError.listenerClosed }
  }

  private func noteShortage(_ error: IOError) {
    let now = NIODeadline.now()
    let isNew = lastShortage.withLock { last in
      defer { last = now }
      return last.map { now - $0 > NetworkLimits.shortageInterval } ?? true
    }
    guard isNew else { return }
    logger.warning(
      "no resources for a further connection; accepting pauses until there are",
      metadata: ["error": "\(error.words)"])
  }

  private func accept(_ channel: any Channel) throws {
    delegate.noted(.accepted)
    guard channels.insert(channel) else {
      delegate.noted(.refused)
      throw TransportError.tooManyConnections
    }
    let (id, evicted) = gate.admit(channel)
    if evicted { delegate.noted(.evicted) }
    let connection = AcceptedConnection(
      transport: self, id: id, host: IPAddressText.host(of: channel.remoteAddress) ?? "unknown")
    try channel.pipeline.syncOperations.addHandler(
      ListenerHandshakeHandler(
        parameters: parameters, owner: connection,
        timeout: TimeAmount(configuration.handshakeTimeout)))
  }

  private func shutDown() async {
    dialler.stop()
    let bound = listeners.withLock { listeners in
      defer { listeners = [] }
      return listeners
    }
    for listener in bound { listener.close(promise: nil) }
    let sessionChannels = registry.withLock { $0.close() }
    for sessionChannel in sessionChannels { sessionChannel.close() }
    let open = channels.close()
    let sessions = Set(sessionChannels.map(\.channelID))
    for channel in open where !sessions.contains(ObjectIdentifier(channel)) {
      channel.close(promise: nil)
    }
    for channel in bound + open { try? await channel.closeFuture.get() }
    logger.debug("transport stopped")
  }
}

extension Transport {
  // MARK: Dialling

  /// A configured address is dialled continually, unless it turns out to be this node. Returns
  /// false if there are ``NetworkLimits/staticTargets`` others.
  @discardableResult
  package func addTarget(_ address: PeerAddress) -> Bool {
    var isAdded = false
    dialler.update { isAdded = $0.addStatic(address) }
    return isAdded
  }

  /// Calls an address of a person at once, unless it is connected or being called.
  package func hurry(_ address: PeerAddress) { dialler.update { $0.hurry(address) } }

  /// Stops calling an address of a person. Its session stays. Returns false if it is none of those.
  @discardableResult
  package func removeTarget(_ address: PeerAddress) -> Bool {
    var isRemoved = false
    dialler.update { isRemoved = $0.removeStatic(address) }
    return isRemoved
  }

  /// The addresses that are called if need be, each with its last call.
  package var dialledAddresses: [DialledAddress] { dialler.addresses }

  /// Without addresses, a device is no longer dialled. Nor is it while there is a session with its
  /// transport key, given or met at its addresses.
  package func setRememberedAddresses(
    _ remembered: [(device: DeviceID, addresses: [PeerAddress], transportKey: TransportPublicKey?)]
  ) {
    dialler.update { schedule in
      for (device, addresses, key) in remembered where device != keys.id {
        schedule.setRemembered(addresses, of: device, key: key)
      }
    }
  }

  /// Some are dialled even if this node has enough sessions: they may lack old data.
  package func setLeftBehind(_ devices: [DeviceID]) {
    dialler.update { $0.setLeftBehind(devices) }
  }

  /// Addresses at which a device is heard on the link are tried first. Empty: not heard.
  func setFoundAddresses(
    _ addresses: [PeerAddress], of device: DeviceID, transportKey: TransportPublicKey?, isNew: Bool
  ) {
    dialler.update {
      $0.setFound(addresses, of: device, key: transportKey, isNew: isNew, at: Dialler.now)
    }
  }

  private func connect(_ dial: Dial) {
    let psks = delegate.presharedKeys().prefix(NetworkLimits.presharedKeys)
    guard !psks.isEmpty else { return dialler.failed(dial, .noKey) }
    let pskIndex = dial.pskIndex % psks.count
    let psk = psks[psks.startIndex + pskIndex]
    Bootstraps.connect(
      to: dial.address,
      admit: { channel in
        guard self.channels.insert(channel) else { throw TransportError.shutDown }
      },
      handler: {
        DiallerHandshakeHandler(
          exchange: try self.parameters.start(.initiator, psk: psk),
          owner: DialledConnection(transport: self, dial: dial, pskIndex: pskIndex),
          timeout: TimeAmount(self.configuration.handshakeTimeout))
      }
    )
    .whenFailure { error in
      self.logger.debug(
        "cannot connect", metadata: ["address": "\(dial.address)", "reason": "\(error)"])
      let reason = (error as? NetworkFailure)?.reason ?? .other("\(error)")
      self.dialler.failed(dial, .unreachable(reason))
    }
  }
}

package enum TransportError: Error, Hashable, Sendable {
  /// A listening socket was closed without cancelling `run()`.
  case listenerClosed
  /// More are refused until one ends.
  case tooManyConnections
  case shutDown
}

package struct TransportConfiguration: Sendable {
  /// `::` includes IPv4, and means `0.0.0.0` without IPv6. An empty list disables listening.
  package var hosts = ["::"]
  /// 0: any.
  package var port: UInt16 = NetworkLimits.defaultPort

  /// The longest duration of a handshake, from accepting or connecting.
  package var handshakeTimeout: Duration = .seconds(5)
  /// The longest duration of a membership-only session.
  package var membershipTimeout: Duration = .seconds(5)
  /// A session without a message for this time is closed.
  package var silenceTimeout: Duration = .seconds(90)
  /// The age at which a session is closed and made again, varied by up to an eighth.
  package var sessionLifetime: Duration = .seconds(86_400)
  /// The time until the last bytes of a closed session are taken.
  package var lingerTimeout: Duration = .seconds(2)

  /// The maximum of the first wait; the minimum is two fifths of it.
  package var leastRedialMilliseconds: UInt64 = 250
  /// For a configured address.
  package var mostRedialMilliseconds: UInt64 = 30_000

  /// A session with more unsent bytes is closed.
  package var queueLimit = NetworkLimits.queuedBytes
  package var sessionLimit = NetworkLimits.sessions

  package init() {}
}

/// A pre-shared key with several owners: a noncopyable key cannot be in an array.
package final class SharedPresharedKey: Sendable {
  package let key: PresharedKey

  package init(_ key: consuming PresharedKey) {
    self.key = key
  }
}

extension Transport {
  // MARK: Sessions

  /// Sends messages after all earlier ones, or drops them if the session has ended.
  ///
  /// They go out with one flush, as do those that gather while the event loop is busy. The session is closed if its
  /// unsent bytes exceed ``TransportConfiguration/queueLimit``, or a message
  /// ``NetworkLimits/messageBytes``.
  /// - Complexity: O(*n*) on the session's event loop.
  package func send(_ id: SessionID, _ messages: [[UInt8]]) {
    registry.withLock { $0.channel(of: id) }?.send(messages)
  }

  /// Requests one call of `sessionDrained` when few of the bytes sent before are unsent. It comes
  /// after this returns, unless the session has ended.
  package func awaitDrain(_ id: SessionID) {
    registry.withLock { $0.channel(of: id) }?.awaitDrain()
  }

  /// Ends a session after the messages sent before; `sessionClosed` follows.
  package func close(_ id: SessionID, reason: CloseReason) {
    let channel = registry.withLock { registry in
      registry.setCloseReason(reason, of: id)
      return registry.channel(of: id)
    }
    channel?.close()
  }

  /// Makes the peer wait, or goes on. Messages already read may still come.
  package func setReading(_ id: SessionID, _ isReading: Bool) {
    registry.withLock { $0.channel(of: id) }?.setReading(isReading)
  }

  /// True if the peer's static key was unknown or its epoch older, and it was not promoted.
  package func isMembershipOnly(_ id: SessionID) -> Bool {
    registry.withLock { $0.isMembershipOnly(id) }
  }

  /// Lifts the limits, because the peer has proved to be a member.
  package func promote(_ id: SessionID) {
    let channel = registry.withLock { $0.promote(id) ? $0.channel(of: id) : nil }
    channel?.setMessageLimit(NetworkLimits.messageBytes)
  }

  /// Nil: too many sessions.
  func establish(
    _ exchange: NoiseExchange, hello: Hello, pskIndex: Int, address: String, dial: Dial?
  ) -> SessionHandler? {
    guard let key = exchange.remoteStaticKey else { return nil }
    let isFull = pskIndex == 0 && delegate.isKnown(key)
    let id = registry.withLock { $0.admit(isMembershipOnly: !isFull) }
    guard let id else {
      delegate.noted(.refused)
      return nil
    }
    guard let ciphers = try? exchange.split() else {
      _ = registry.withLock { $0.remove(id) }
      return nil
    }
    let codec = MessageCodec(
      ciphers: ciphers,
      messageLimit: isFull
        ? NetworkLimits.messageBytes : NetworkLimits.membershipMessageBytes,
      // A member whose proof is being judged may have sent more behind it.
      holdsLong: !isFull)
    let peer = SessionPeer(
      transportKey: key, hello: hello, isDialled: dial != nil, address: address,
      isMembershipOnly: pskIndex != 0)
    return SessionHandler(
      codec: codec,
      sink: TransportSession(transport: self, id: id, peer: peer, dial: dial),
      silenceTimeout: TimeAmount(configuration.silenceTimeout))
  }

  /// Varied by up to an eighth.
  func sessionLifetime() -> TimeAmount {
    let nanoseconds = Double(TimeAmount(configuration.sessionLifetime).nanoseconds)
    return .nanoseconds(Int64(nanoseconds * (0.875 + 0.25 * entropy.fraction())))
  }
}

extension Transport {
  /// Called when a device was heard at a new host. If it has moved, its old sessions are dead and
  /// end. If it has several addresses, its kernel answers and they stay.
  func probeSessions(with key: TransportPublicKey, butAt host: String) {
    for id in dialler.sessions(with: key, butAt: host) {
      registry.withLock { $0.channel(of: id) }?.probe()
    }
  }

  /// Called when this host's addresses changed: sessions from an old address hang.
  func probeSessions() {
    for channel in registry.withLock({ $0.channels }) { channel.probe() }
  }

  /// Called when this host's addresses changed: one that was its own may be another's now.
  func redialOurselves() { dialler.update { $0.redialOurselves() } }

  /// Called because a person looks at the connected devices.
  ///
  /// If the peer is gone, a session that received nothing recently and has nothing unsent ends
  /// within seconds; others within 75 s (30 s until something is sent, 45 s until the kernel gives
  /// up).
  package func probeQuietSessions() {
    for channel in registry.withLock({ $0.channels }) {
      channel.probe(ifQuietFor: NetworkLimits.quietTime)
    }
  }
}
