public import KithCrypto
internal import NIOCore
internal import Synchronization

/// An established exchange between who invites and who joins: messages of at most 64 KiB, both
/// ways, framed as those of sessions.
public final class PairingChannel: Sendable {
  private struct State {
    var messages: [[UInt8]] = []
    var waiter: CheckedContinuation<[UInt8], any Error>?
    var end: PairingError?
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
  func writable(_ isWritable: Bool) {}
  func hasRoom() {}
  func failed(_ error: FrameError) { pairing.end(.closed) }
  func fellSilent() {}

  func closed() {
    pairing.end(.closed)
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
