internal import KithCore
public import KithCrypto
internal import NIOCore
internal import Synchronization

/// What takes the messages of a pairing that became a session. Called on the channel's event loop, in
/// order.
public protocol PairingSessionOwner: AnyObject, Sendable {
  /// A message came.
  func received(_ message: [UInt8])
  /// More can be sent, or not for now.
  func writable(_ isWritable: Bool)
  /// Little is left unsent, which was asked for.
  func hasRoom()
  /// The connection is over. Called once, last.
  func closed()
}

/// An established exchange between who invites and who joins: messages of at most 64 KiB, both
/// ways, framed as those of sessions. Once the device is certified it becomes a session, whose messages
/// are as long as any session's.
public final class PairingChannel: Sendable {
  private struct State {
    var messages: [[UInt8]] = []
    var waiter: CheckedContinuation<[UInt8], any Error>?
    var end: PairingError?
    var owner: (any PairingSessionOwner)?
    var isSession = false
    /// Whether the owner was told of the end.
    var isEndTold = false
  }

  /// The other side's proved static key.
  public let remoteStatic: TransportPublicKey
  /// Names this exchange: the handshake's hash, the same on both sides.
  public let handshakeHash: [UInt8]
  /// Where the other side is.
  public let remoteAddress: String
  /// The payload that came with the handshake: the inviter's for who joins, and the other way.
  public let remotePayload: [UInt8]

  private let state = Mutex(State())
  private let link = Mutex<SessionLink?>(nil)

  init(remoteStatic: TransportPublicKey, hash: [UInt8], address: String, payload: [UInt8]) {
    self.remoteStatic = remoteStatic
    handshakeHash = hash
    remoteAddress = address
    remotePayload = payload
  }

  /// Sends a message; it is on its way when this returns, not received.
  public func send(_ message: [UInt8]) throws(PairingError) {
    guard message.count <= NetworkLimits.pairingMessageBytes else {
      throw .messageTooLong(bytes: message.count, limit: NetworkLimits.pairingMessageBytes)
    }
    if let end = state.withLock({ $0.end }) { throw end }
    guard let link = link.withLock({ $0 }), case .queued = link.send([message]) else {
      throw .closed
    }
  }

  // MARK: The session

  /// Takes messages of a session's length from here on. If nothing comes for
  /// ``NetworkLimits/joinSilence``, the connection is closed. The other side must not send such before: the
  /// inviter does once the joiner's first message has come.
  public func allowSession() {
    state.withLock { $0.isSession = true }
    let link = link.withLock { $0 }
    link?.setMessageLimit(Limits.messageBytes)
    link?.watchForSilence(TimeAmount(NetworkLimits.joinSilence))
    // The handshake's limit of a few seconds is too short for a device that is busy storing.
    link?.setPatience(NetworkLimits.joinSilence)
  }

  /// Hands all messages that have come, and that come from here on, to an owner.
  public func carrySession(for owner: any PairingSessionOwner) {
    guard let link = link.withLock({ $0 }) else { return owner.closed() }
    // On the event loop nothing comes in between.
    link.execute {
      let (messages, isOver) = self.state.withLock { state in
        state.owner = owner
        defer { state.messages = [] }
        return (state.messages, state.end != nil)
      }
      for message in messages { owner.received(message) }
      if isOver { self.tellEnd() }
    }
  }

  /// Sends a message of the session.
  public func sendSession(_ message: [UInt8]) { link.withLock { $0 }?.send([message]) }

  /// Has the owner told when little is left unsent of what was sent.
  public func awaitRoom() { link.withLock { $0 }?.awaitRoom() }

  /// Reads from the socket, or stops.
  public func setReading(_ isReading: Bool) { link.withLock { $0 }?.setReading(isReading) }

  /// Whether the exchange became a session, which outlasts its invitation.
  var isSession: Bool { state.withLock { $0.isSession } }

  fileprivate func tellEnd() {
    let owner = state.withLock { state -> (any PairingSessionOwner)? in
      guard let owner = state.owner, !state.isEndTold else { return nil }
      state.isEndTold = true
      return owner
    }
    owner?.closed()
  }

  fileprivate var owner: (any PairingSessionOwner)? { state.withLock { $0.owner } }

  // MARK: Messages

  /// Waits for the next message. One task at a time; another gets `busy`.
  ///
  /// Throws `closed` when no more will come, `expired` when the invitation's time is over, and
  /// `CancellationError`.
  public func receive() async throws -> [UInt8] {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result: Result<[UInt8], any Error>? = state.withLock { state in
          if !state.messages.isEmpty { return .success(state.messages.removeFirst()) }
          if let end = state.end { return .failure(end) }
          if state.waiter != nil { return .failure(PairingError.busy) }
          if Task.isCancelled { return .failure(CancellationError()) }
          state.waiter = continuation
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      state.withLock { $0.waiter.take() }?.resume(throwing: CancellationError())
    }
  }

  /// Waits until the other side has ended the exchange, or for two seconds: what was sent last may
  /// still be on its way, and would be lost with a process that ends, or a connection that is reset.
  public func awaitEnd() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { while (try? await self.receive()) != nil {} }
      group.addTask { try? await Task.sleep(for: .seconds(2)) }
      await group.next()
      group.cancelAll()
    }
  }

  /// Ends the exchange, after what was sent.
  public func close() {
    end(.closed)
    link.withLock { $0 }?.close()
  }

  func opened(_ link: SessionLink) {
    self.link.withLock { $0 = link }
  }

  /// Hands over a message; more than may wait end the exchange.
  func deliver(_ message: [UInt8]) {
    if let owner { return owner.received(message) }
    enum Step {
      case hand(CheckedContinuation<[UInt8], any Error>)
      case keep
      case abort
    }
    let step: Step = state.withLock { state in
      if let waiter = state.waiter.take() { return .hand(waiter) }
      guard state.end == nil else { return .keep }
      guard state.messages.count < NetworkLimits.pairingQueuedMessages else { return .abort }
      state.messages.append(message)
      return .keep
    }
    switch step {
    case .hand(let waiter): waiter.resume(returning: message)
    case .keep: break
    case .abort: abort(.closed)
    }
  }

  /// No more comes; what has come can still be taken.
  func end(_ error: PairingError) {
    let waiter = state.withLock { state in
      if state.end == nil { state.end = error }
      return state.waiter.take()
    }
    waiter?.resume(throwing: error)
  }

  func abort(_ error: PairingError) {
    end(error)
    link.withLock { $0 }?.abort()
  }
}

/// What stands between a pairing's channel and its ``PairingChannel``.
final class PairingSink: SessionSink {
  private let pairing: PairingChannel
  private let channel: any Channel
  private let linger: Duration
  private let ready: (PairingChannel) -> Void
  private let over: () -> Void

  /// `ready` is called when messages can be sent, `over` when the connection is closed.
  init(
    _ pairing: PairingChannel, channel: any Channel, linger: Duration,
    ready: @escaping (PairingChannel) -> Void, over: @escaping () -> Void
  ) {
    self.pairing = pairing
    self.channel = channel
    self.linger = linger
    self.ready = ready
    self.over = over
  }

  func opened(_ handler: SessionHandler) {
    pairing.opened(
      SessionLink(
        channel: channel, handler: handler, counters: nil, linger: TimeAmount(linger)))
    ready(pairing)
  }

  func received(_ message: [UInt8]) { pairing.deliver(message) }
  func receivedBytes(_ count: Int) {}
  func writable(_ isWritable: Bool) { pairing.owner?.writable(isWritable) }
  func hasRoom() { pairing.owner?.hasRoom() }
  func failed(_ error: FrameError) { pairing.end(.closed) }
  func fellSilent() {}

  func closed() {
    pairing.end(.closed)
    pairing.tellEnd()
    over()
  }
}

extension SessionHandler {
  /// The handler of a pairing whose handshake is finished; nil: it is not.
  static func pairing(
    _ exchange: NoiseExchange, payload: [UInt8], address: String, channel: any Channel,
    linger: Duration, ready: @escaping (PairingChannel) -> Void, over: @escaping () -> Void
  ) -> SessionHandler? {
    let hash = exchange.hash
    guard let key = exchange.remoteStaticKey, let ciphers = try? exchange.split() else {
      return nil
    }
    let pairing = PairingChannel(
      remoteStatic: key, hash: hash, address: address, payload: payload)
    return SessionHandler(
      codec: MessageCodec(ciphers: ciphers, messageLimit: NetworkLimits.pairingMessageBytes),
      sink: PairingSink(pairing, channel: channel, linger: linger, ready: ready, over: over),
      silenceTimeout: nil)
  }
}
