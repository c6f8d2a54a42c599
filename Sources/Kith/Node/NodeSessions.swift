internal import KithCore
internal import KithCrypto
internal import KithNetwork
internal import Synchronization

/// Connects the engine with its transport while the node runs.
final class NodeSessions: TransportDelegate, DiscoveryDelegate, SessionTransport {
  private struct State {
    var transport: Transport?
    var sessions: Set<SessionID> = []
    var port: UInt16 = 0
    var keys: [EpochID: SharedPresharedKey] = [:]
    var unauthenticated = 0
  }

  private let engine: Engine
  private let state = Mutex(State())

  init(engine: Engine) {
    self.engine = engine
  }

  func setTransport(_ transport: Transport?) { state.withLock { $0.transport = transport } }

  /// Sets the port that handshakes name as this node's.
  func setPort(_ port: UInt16) { state.withLock { $0.port = port } }

  private var transport: Transport? { state.withLock { $0.transport } }

  // MARK: Questions and events of the transport

  func presharedKeys() -> [SharedPresharedKey] {
    let now = engine.clock()
    let epochs = engine.read { $0.handshakeEpochs(at: now) }
    return state.withLock { state in
      let keys = epochs.map { state.keys[$0.id] ?? SharedPresharedKey($0.psk.copy()) }
      // This also drops unused keys.
      state.keys = Dictionary(uniqueKeysWithValues: zip(epochs.map(\.id), keys))
      return keys
    }
  }

  func isKnown(_ key: TransportPublicKey) -> Bool {
    engine.read { $0.roster.device(withTransportKey: key) != nil }
  }

  func hello() -> Hello {
    let port = state.withLock { $0.port }
    let now = engine.clock()
    return engine.read { $0.hello(port: port, at: now) }
  }

  func unauthenticatedRefused(_ host: String) {
    let count = state.withLock { state in
      state.unauthenticated += 1
      return state.unauthenticated
    }
    engine.log(LogLine(.unauthenticatedRefused, ["address": host, "count": "\(count)"]))
  }

  func dialEnded() { engine.progress.raise() }

  func noted(_ event: TransportEvent) { engine.metrics.count(event) }

  func sessionOpened(_ id: SessionID, _ peer: SessionPeer) {
    let transport = state.withLock { state in
      state.sessions.insert(id)
      return state.transport
    }
    engine.metrics.sessions.increment()
    guard engine.acceptsSessions else {
      transport?.close(id, reason: .silent)
      return
    }
    engine.input(.connected(id, peer))
  }

  func sessionReceived(_ id: SessionID, _ message: [UInt8]) {
    engine.metrics.bytesReceived.increment(by: message.count)
    guard let inbound = engine.check(message) else {
      transport?.close(id, reason: .protocolViolation)
      return
    }
    engine.input(.received(id, inbound))
  }

  func sessionWritable(_ id: SessionID, _ isWritable: Bool) {
    engine.input(.writable(id, isWritable))
  }

  func sessionDrained(_ id: SessionID) {
    engine.input(.drained(id))
  }

  func sessionClosed(_ id: SessionID) {
    state.withLock { _ = $0.sessions.remove(id) }
    engine.input(.disconnected(id))
  }

  // MARK: Questions of discovery

  func currentEpoch() -> EpochKeys? { engine.read { $0.keyring.current } }

  func epochKeys() -> [EpochKeys] { engine.read { $0.keyring.newestFirst } }

  func member(_ device: DeviceID) -> Certificate? {
    engine.read { $0.roster.isMember(device) ? $0.roster.certificate(of: device) : nil }
  }

  // MARK: Orders of the engine

  func send(_ messages: [[UInt8]], to session: SessionID) { transport?.send(session, messages) }

  func awaitDrain(_ session: SessionID) { transport?.awaitDrain(session) }

  func close(_ session: SessionID, _ reason: CloseReason) {
    transport?.close(session, reason: reason)
  }

  func closeAll() {
    let (transport, sessions) = state.withLock { ($0.transport, $0.sessions) }
    for session in sessions { transport?.close(session, reason: .silent) }
  }

  func pauseReading(_ session: SessionID, _ isPaused: Bool) {
    transport?.setReading(session, !isPaused)
  }

  func setAddresses(_ addresses: [DeviceID: [String]]) {
    guard let transport else { return }
    let roster = engine.read { $0.roster }
    transport.setRememberedAddresses(
      addresses.map { device, texts in
        (
          device, texts.compactMap { try? PeerAddress($0) },
          roster.certificate(of: device)?.transportKey
        )
      })
  }

  func setLeftBehind(_ devices: [DeviceID]) { transport?.setLeftBehind(devices) }

  func promote(_ session: SessionID) { transport?.promote(session) }
}

extension Engine {
  /// Above this size, helpers check a message's signatures, and its entries are opened ahead.
  private static let largeMessageBytes = 32 << 10

  /// Decodes a message, checks its signatures, and opens its entries, without the lock; nil: end the
  /// session. If `isSerial`, no other thread helps.
  func check(_ message: [UInt8], isSerial: Bool = false) -> InboundMessage? {
    guard message.count > Self.largeMessageBytes else {
      return InboundMessage(decoding: message, account: account)
    }
    let repeater: InboundMessage.Repeater? =
      isSerial ? nil : { @Sendable count, body in BlockingThread.perform(count, body) }
    var inbound = InboundMessage(decoding: message, account: account, concurrently: repeater)
    inbound?.open(with: read { $0.entryOpener })
    return inbound
  }

  /// Whether new sessions are accepted: not while storage fails.
  var acceptsSessions: Bool {
    state.withLock { !$0.shell.isClosed && $0.shell.health.problem == nil }
  }
}
