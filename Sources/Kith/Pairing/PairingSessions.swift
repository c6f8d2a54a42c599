internal import KithCore
internal import KithNetwork
internal import Synchronization

extension SessionID {
  /// A transport's session ids are below, those of pairings from here on.
  private static let firstOfPairings: UInt64 = 1 << 63

  var isPairing: Bool { rawValue >= Self.firstOfPairings }

  fileprivate init(pairing number: UInt64) { self.init(rawValue: Self.firstOfPairings + number) }
}

/// The sessions of an engine that began as pairings. They exist also without a running node.
final class PairingSessions: SessionTransport {
  private struct State {
    var sessions: [SessionID: PairingSession] = [:]
    var last: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Makes a session, which carries nothing before ``PairingSession/begin(_:first:)``.
  func add(_ channel: PairingChannel, _ engine: Engine) -> PairingSession {
    state.withLock { state in
      state.last += 1
      let id = SessionID(pairing: state.last)
      let session = PairingSession(id: id, channel: channel, engine: engine)
      state.sessions[id] = session
      return session
    }
  }

  fileprivate func remove(_ id: SessionID) {
    state.withLock { $0.sessions[id] = nil }
  }

  private subscript(id: SessionID) -> PairingSession? { state.withLock { $0.sessions[id] } }

  /// All data of the inviter was pulled and is durable.
  func pulledAll(_ id: SessionID) { self[id]?.tell(.pulledAll) }

  // MARK: Orders of the engine

  func send(_ messages: [[UInt8]], to session: SessionID) {
    let channel = self[session]?.channel
    for message in messages { channel?.sendSession(message) }
  }
  func awaitDrain(_ session: SessionID) { self[session]?.channel.awaitDrain() }
  func close(_ session: SessionID, _ reason: CloseReason) { self[session]?.close(reason) }

  func closeAll() {
    for session in state.withLock({ Array($0.sessions.values) }) { session.close(.silent) }
  }

  func pauseReading(_ session: SessionID, _ isPaused: Bool) {
    self[session]?.channel.setReading(!isPaused)
  }
}

final class PairingSession: PairingSessionOwner {
  enum Event: Sendable {
    case pulledAll
    /// The session ended; the reason if this side ended it.
    case ended(CloseReason?)
  }

  let id: SessionID
  let events: AsyncStream<Event>
  fileprivate let channel: PairingChannel
  private let engine: Engine
  private let continuation: AsyncStream<Event>.Continuation
  private let reason = Mutex<CloseReason?>(nil)

  fileprivate init(id: SessionID, channel: PairingChannel, engine: Engine) {
    self.id = id
    self.channel = channel
    self.engine = engine
    (events, continuation) = AsyncStream.makeStream()
  }

  /// Begins the session, with a message that was already received.
  func begin(_ input: Input, first: [UInt8]? = nil) {
    engine.input(input)
    // On the caller's task, which must not wait for other threads.
    if let first { received(first, isSerial: true) }
    channel.carrySession(for: self)
  }

  fileprivate func tell(_ event: Event) { continuation.yield(event) }

  fileprivate func close(_ reason: CloseReason) {
    self.reason.withLock { $0 = $0 ?? reason }
    channel.close()
  }

  // MARK: Events of the connection

  func received(_ message: [UInt8]) { received(message, isSerial: false) }

  private func received(_ message: [UInt8], isSerial: Bool) {
    engine.metrics.bytesReceived.increment(by: message.count)
    guard let inbound = engine.check(message, isSerial: isSerial) else {
      return close(.protocolViolation)
    }
    engine.input(.received(id, inbound))
  }

  func writable(_ isWritable: Bool) { engine.input(.writable(id, isWritable)) }

  func drained() { engine.input(.drained(id)) }

  func closed() {
    engine.input(.disconnected(id))
    engine.state.withLock { $0.transports.pairings }.remove(id)
    tell(.ended(reason.withLock { $0 }))
    continuation.finish()
  }
}
