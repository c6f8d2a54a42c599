internal import KithCore
package import KithCrypto
internal import NIOCore
internal import Synchronization

package struct PairingConfiguration: Sendable {
  /// See ``TransportConfiguration/hosts``.
  package var hosts = ["::"]
  /// 0: any.
  package var port: UInt16 = 0
  package var lifetime: Duration = .seconds(600)
  package var handshakeTimeout: Duration = .seconds(5)
  /// For a joiner with a code.
  package var queueTimeout: Duration = .seconds(20)
  /// Until the last bytes of a closed exchange are taken.
  package var lingerTimeout: Duration = .seconds(2)

  package init() {}
}

/// Receives a pairing's messages after it became a session, in order, on the channel's event loop.
package protocol PairingSessionOwner: AnyObject, Sendable {
  func received(_ message: [UInt8])
  /// More can be sent, or not for now.
  func writable(_ isWritable: Bool)
  /// See ``PairingChannel/awaitDrain()``.
  func drained()
  /// Called once, last.
  func closed()
}

/// Framed messages of at most 64 KiB between inviter and joiner.
///
/// Once the device is certified, the pairing becomes a session, with a session's limits.
package final class PairingChannel: Sendable {
  private struct State {
    var messages: [[UInt8]] = []
    var waiter: CheckedContinuation<[UInt8], any Error>?
    var end: PairingError?
    var onEnd: (@Sendable () -> Void)?
    /// Nil again after its end was told.
    var owner: (any PairingSessionOwner)?
    var isSession = false
    /// Whether reading is paused until an owner takes the messages.
    var isFull = false
  }

  /// Proved by the other side.
  package let remoteStatic: TransportPublicKey
  package let remoteAddress: String
  /// From the other side's handshake.
  package let remotePayload: [UInt8]

  private let linger: Duration
  private let ready: @Sendable (PairingChannel) -> Void
  private let over: @Sendable () -> Void
  private let state = Mutex(State())
  /// While the connection is open. The two hold each other.
  private let channel = Mutex<SessionChannel?>(nil)

  /// `ready` is called when messages can be sent, `over` after closing.
  private init(
    remoteStatic: TransportPublicKey, address: String, payload: [UInt8],
    linger: Duration, ready: @escaping @Sendable (PairingChannel) -> Void,
    over: @escaping @Sendable () -> Void
  ) {
    self.remoteStatic = remoteStatic
    remoteAddress = address
    remotePayload = payload
    self.linger = linger
    self.ready = ready
    self.over = over
  }

  /// Returns the handler of a new pairing; nil if the handshake is not finished.
  static func handler(
    _ exchange: NoiseExchange, payload: [UInt8], address: String, linger: Duration,
    ready: @escaping @Sendable (PairingChannel) -> Void,
    over: @escaping @Sendable () -> Void = {}
  ) -> SessionHandler? {
    guard let key = exchange.remoteStaticKey, let ciphers = try? exchange.split() else {
      return nil
    }
    return SessionHandler(
      codec: MessageCodec(ciphers: ciphers, messageLimit: NetworkLimits.pairingMessageBytes),
      sink: PairingChannel(
        remoteStatic: key, address: address, payload: payload, linger: linger, ready: ready,
        over: over),
      silenceTimeout: nil)
  }

  /// Returns before the message is received.
  package func send(_ message: [UInt8]) throws(PairingError) {
    guard message.count <= NetworkLimits.pairingMessageBytes else {
      throw .messageTooLong(bytes: message.count, limit: NetworkLimits.pairingMessageBytes)
    }
    if let end = state.withLock({ $0.end }) { throw end }
    guard let channel = channel.withLock({ $0 }), case .queued = channel.send(message) else {
      throw .closed
    }
  }

  // MARK: The session

  /// Accepts messages of a session's length, and closes the connection after
  /// ``NetworkLimits/joinSilence`` without any.
  ///
  /// The inviter sends long ones only after the joiner's first message.
  package func allowSession() {
    state.withLock { $0.isSession = true }
    let channel = channel.withLock { $0 }
    channel?.setMessageLimit(Limits.messageBytes)
    channel?.watchForSilence(TimeAmount(NetworkLimits.joinSilence))
    // A device that is busy storing needs more than a handshake's few seconds.
    channel?.setPatience(NetworkLimits.joinSilence)
  }

  /// Passes all messages, also waiting ones, to `owner`.
  package func carrySession(for owner: any PairingSessionOwner) {
    // After the end no message arrives, and on the event loop none arrives in between.
    guard let channel = channel.withLock({ $0 }) else { return pass(to: owner) }
    channel.execute { self.pass(to: owner) }
  }

  private func pass(to owner: any PairingSessionOwner) {
    let (messages, wasFull, isOver) = state.withLock { state in
      state.owner = owner
      defer { (state.messages, state.isFull) = ([], false) }
      return (state.messages, state.isFull, state.end != nil)
    }
    // The event loop reads on only later, so messages still on the connection follow these.
    if wasFull { setReading(true) }
    for message in messages { owner.received(message) }
    if isOver { tellEnd() }
  }

  package func sendSession(_ message: [UInt8]) { channel.withLock { $0 }?.send(message) }

  /// Calls the owner's `drained()` when little is unsent.
  package func awaitDrain() { channel.withLock { $0 }?.awaitDrain() }

  package func setReading(_ isReading: Bool) { channel.withLock { $0 }?.setReading(isReading) }

  /// A session outlasts its invitation.
  var isSession: Bool { state.withLock { $0.isSession } }

  private func tellEnd() {
    state.withLock { $0.owner.take() }?.closed()
  }

  private var owner: (any PairingSessionOwner)? { state.withLock { $0.owner } }

  // MARK: Messages

  /// Waits for the next message.
  ///
  /// Throws `closed` at the end, `expired` after the invitation's time, `busy` if another task
  /// waits, and `CancellationError`.
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

  /// Waits for the other side to end the exchange, and returns whether it did. Otherwise the last
  /// message may be lost with the process or by a reset.
  @discardableResult
  package func awaitEnd(within limit: Duration = .seconds(2)) async -> Bool {
    await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        while (try? await self.receive()) != nil {}
        return true
      }
      group.addTask {
        try? await Task.sleep(for: limit)
        return false
      }
      defer { group.cancelAll() }
      return await group.next() ?? false
    }
  }

  /// Calls the body when the exchange ends, or at once if it has. Waiting messages stay.
  package func onEnd(_ body: @escaping @Sendable () -> Void) {
    let hasEnded = state.withLock { state in
      if state.end == nil { state.onEnd = body }
      return state.end != nil
    }
    if hasEnded { body() }
  }

  /// Ends the exchange after the sent messages.
  package func close() {
    end(.closed)
    channel.withLock { $0 }?.close()
  }

  /// Waiting messages can still be received.
  func end(_ error: PairingError) {
    let (waiter, onEnd) = state.withLock { state in
      if state.end == nil { state.end = error }
      return (state.waiter.take(), state.onEnd.take())
    }
    waiter?.resume(throwing: error)
    onEnd?()
  }

  func abort(_ error: PairingError) {
    end(error)
    channel.withLock { $0 }?.abort()
  }
}

extension PairingChannel: SessionSink {
  func opened(_ handler: SessionHandler, on channel: any Channel) {
    let opened = SessionChannel(
      channel: channel, handler: handler, linger: TimeAmount(linger))
    self.channel.withLock { $0 = opened }
    ready(self)
  }

  /// Too many waiting messages end the exchange. A session pauses: its owner may have much to
  /// publish before it takes them.
  func received(_ message: [UInt8]) {
    if let owner { return owner.received(message) }
    var (isFull, isTooMany) = (false, false)
    let waiter = state.withLock { state -> CheckedContinuation<[UInt8], any Error>? in
      if let waiter = state.waiter.take() { return waiter }
      guard state.end == nil else { return nil }
      isTooMany = state.messages.count >= NetworkLimits.pairingQueuedMessages
      if !isTooMany { state.messages.append(message) }
      isFull = state.isSession && state.messages.count == NetworkLimits.pairingQueuedMessages
      state.isFull = isFull
      return nil
    }
    waiter?.resume(returning: message)
    if isTooMany { return abort(.closed) }
    if isFull { setReading(false) }
  }

  /// How many messages nobody has taken yet.
  var waitingMessages: Int { state.withLock { $0.messages.count } }

  func receivedBytes(_ count: Int) {}
  func writable(_ isWritable: Bool) { owner?.writable(isWritable) }
  func drained() { owner?.drained() }
  func failed(_ error: FrameError) { end(.closed) }
  func fellSilent() {}

  func closed() {
    end(.closed)
    channel.withLock { $0 = nil }
    tellEnd()
    over()
  }
}
