internal import KithCore
package import KithCrypto
internal import NIOCore
internal import Synchronization

/// The receiver of a pairing's messages after it became a session. Called on the channel's event
/// loop, in order.
package protocol PairingSessionOwner: AnyObject, Sendable {
  /// A message came.
  func received(_ message: [UInt8])
  /// Called when more can be sent, or not for now.
  func writable(_ isWritable: Bool)
  /// Called as requested when little is left unsent.
  func hasRoom()
  /// Called once, last, when the connection is closed.
  func closed()
}

/// An established exchange between inviter and joiner: framed messages of at most 64 KiB, both
/// ways. Once the device is certified it becomes a session, with a session's limits.
package final class PairingChannel: Sendable {
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
  package let remoteStatic: TransportPublicKey
  /// Names this exchange: the handshake's hash, equal on both sides.
  package let handshakeHash: [UInt8]
  /// The other side's address.
  package let remoteAddress: String
  /// The other side's payload of the handshake.
  package let remotePayload: [UInt8]

  private let state = Mutex(State())
  private let link = Mutex<SessionLink?>(nil)

  init(remoteStatic: TransportPublicKey, hash: [UInt8], address: String, payload: [UInt8]) {
    self.remoteStatic = remoteStatic
    handshakeHash = hash
    remoteAddress = address
    remotePayload = payload
  }

  /// Queues a message; it is not received yet on return.
  package func send(_ message: [UInt8]) throws(PairingError) {
    guard message.count <= NetworkLimits.pairingMessageBytes else {
      throw .messageTooLong(bytes: message.count, limit: NetworkLimits.pairingMessageBytes)
    }
    if let end = state.withLock({ $0.end }) { throw end }
    guard let link = link.withLock({ $0 }), case .queued = link.send([message]) else {
      throw .closed
    }
  }

  // MARK: The session

  /// Accepts messages of a session's length from now on, and closes the connection after
  /// ``NetworkLimits/joinSilence`` without any. The other side must not send longer ones before:
  /// the inviter does after the joiner's first message.
  package func allowSession() {
    state.withLock { $0.isSession = true }
    let link = link.withLock { $0 }
    link?.setMessageLimit(Limits.messageBytes)
    link?.watchForSilence(TimeAmount(NetworkLimits.joinSilence))
    // The handshake's limit of a few seconds is too short for a device that is busy storing.
    link?.setPatience(NetworkLimits.joinSilence)
  }

  /// Passes all messages, also waiting ones, to an owner.
  package func carrySession(for owner: any PairingSessionOwner) {
    guard let link = link.withLock({ $0 }) else { return owner.closed() }
    // On the event loop no message arrives in between.
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
  package func sendSession(_ message: [UInt8]) { link.withLock { $0 }?.send([message]) }

  /// Reports to the owner when little of the sent data is unsent.
  package func awaitRoom() { link.withLock { $0 }?.awaitRoom() }

  /// Starts or stops reading from the socket.
  package func setReading(_ isReading: Bool) { link.withLock { $0 }?.setReading(isReading) }

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
  /// Throws `closed` at the end, `expired` after the invitation's time, and `CancellationError`.
  package func receive() async throws -> [UInt8] {
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

  /// Waits until the other side ends the exchange, but no longer than the limit: the last message
  /// would be lost with the process or by a reset.
  package func awaitEnd(within limit: Duration = .seconds(2)) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { while (try? await self.receive()) != nil {} }
      group.addTask { try? await Task.sleep(for: limit) }
      await group.next()
      group.cancelAll()
    }
  }

  /// Ends the exchange after the sent messages.
  package func close() {
    end(.closed)
    link.withLock { $0 }?.close()
  }

  func opened(_ link: SessionLink) {
    self.link.withLock { $0 = link }
  }

  /// Stores a message; too many end the exchange.
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

  /// Accepts no more; stored messages can still be received.
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

/// The handler of a ``PairingChannel``.
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
  /// The handler of a pairing with a finished handshake; otherwise nil.
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
