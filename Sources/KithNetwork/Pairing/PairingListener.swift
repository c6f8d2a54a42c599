public import KithCore
public import KithCrypto
public import NIOCore
internal import Synchronization

/// Who invites: a listener of its own, under the invitation's token.
///
/// One exchange at a time. Each handshake that fails after a complete first message, or never
/// gets a valid one, spends one of three tries; a connection that sends no complete first message
/// spends nothing. Failures look alike: silence, as with sessions.
public final class PairingListener: Sendable {
  private struct State {
    var triesLeft = NetworkLimits.pairingTries
    var isExchanging = false
    var listeners: [any Channel] = []
    var active: PairingChannel?
    var arrived: PairingChannel?
    var waiter: CheckedContinuation<PairingChannel, any Error>?
    var end: PairingError?
    var timer: Scheduled<Void>?
  }

  let configuration: PairingConfiguration
  let token: SharedPresharedKey
  let invitation: [UInt8]
  let gate = Gate(
    limit: NetworkLimits.pairingHalfOpen, limitPerAddress: NetworkLimits.pairingHalfOpen)
  private let parameters: NoiseParameters
  private let group: any EventLoopGroup
  private let channels = ChannelTable()
  private let state = Mutex(State())

  /// Makes an invitation's listener, which does nothing yet.
  ///
  /// - Parameters:
  ///   - keys: The inviter's own keys, of which the transport key is used.
  ///   - token: 32 bytes that the joiner is given in another way.
  ///   - invitation: The payload of message 2.
  ///   - configuration: Where to listen, and the time limits.
  ///   - eventLoopGroup: The threads, which the caller shuts down.
  ///   - entropy: Where ephemeral keys come from.
  public init(
    keys: DeviceKeys, token: SharedPresharedKey, invitation: [UInt8],
    configuration: PairingConfiguration = PairingConfiguration(),
    eventLoopGroup: any EventLoopGroup, entropy: any Entropy = SystemRandom()
  ) {
    self.token = token
    self.invitation = invitation
    self.configuration = configuration
    group = eventLoopGroup
    parameters = NoiseParameters(
      prologue: NoiseParameters.pairingPrologue, keys: keys, entropy: SharedEntropy(entropy))
  }

  /// Begins to listen, and the invitation's time with it. Gives the addresses with their ports.
  @discardableResult
  public func bind() async throws -> [PeerAddress] {
    let bound = try await Bootstraps.bind(
      group, hosts: configuration.hosts, port: configuration.port,
      userTimeout: configuration.handshakeTimeout
    ) { try self.accept($0) }
    let timer = group.next().scheduleTask(in: TimeAmount(configuration.lifetime)) {
      self.end(.expired)
    }
    state.withLock { state in
      state.listeners += bound
      state.timer = timer
    }
    return try bound.map { try PeerAddress(bound: $0) }
  }

  /// Waits for a joiner whose handshake succeeds. Call it again, after closing the channel, to let
  /// another try.
  ///
  /// Throws `triesExhausted`, `expired`, `closed` after ``close()``, `busy` where another task
  /// waits, and `CancellationError`.
  public func accept() async throws -> PairingChannel {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result: Result<PairingChannel, any Error>? = state.withLock { state in
          if let arrived = state.arrived.take() { return .success(arrived) }
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

  /// Ends the invitation: stops listening and closes every connection.
  public func close() async {
    end(.closed)
    let listeners = state.withLock { $0.listeners }
    for channel in listeners + channels.close() {
      channel.close(promise: nil)
      try? await channel.closeFuture.get()
    }
  }

  // MARK: What connections tell

  /// A first message authenticated; false: another exchange is under way.
  func begin() -> Bool {
    state.withLock { state in
      guard !state.isExchanging, state.end == nil else { return false }
      state.isExchanging = true
      return true
    }
  }

  /// The exchange is over; another may begin.
  func finishExchange() {
    state.withLock { state in
      state.isExchanging = false
      state.active = nil
      state.arrived = nil
    }
  }

  /// A handshake failed.
  func spendTry() {
    let isOver = state.withLock { state in
      state.triesLeft -= 1
      return state.triesLeft <= 0
    }
    if isOver { end(.triesExhausted) }
  }

  /// A handshake succeeded.
  func arrived(_ pairing: PairingChannel) {
    let waiter = state.withLock { state -> CheckedContinuation<PairingChannel, any Error>? in
      state.active = pairing
      guard let waiter = state.waiter.take() else {
        state.arrived = pairing
        return nil
      }
      return waiter
    }
    waiter?.resume(returning: pairing)
  }

  /// Ends the invitation for good. Wrong tokens do not end an exchange that is established.
  private func end(_ error: PairingError) {
    let (waiter, active, listeners, timer) = state.withLock { state in
      if state.end == nil { state.end = error }
      return (state.waiter.take(), state.active, state.listeners, state.timer.take())
    }
    timer?.cancel()
    for listener in listeners { listener.close(promise: nil) }
    if error != .triesExhausted { active?.abort(error) }
    waiter?.resume(throwing: error)
  }

  private func accept(_ channel: any Channel) throws {
    guard channels.insert(channel), let (id, _) = gate.admit(channel) else {
      throw TransportError.tooManyConnections
    }
    try channel.pipeline.syncOperations.addHandler(
      ListenerHandshakeHandler(
        parameters: parameters, owner: InvitingConnection(listener: self, id: id),
        timeout: TimeAmount(configuration.handshakeTimeout)))
  }
}
