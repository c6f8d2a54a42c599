package import KithCore
package import KithCrypto
internal import NIOCore
internal import Synchronization

/// The inviter's own listener, under the invitation's token.
///
/// It runs one exchange at a time; joiners with a code wait for their turn. No exchange follows one
/// that got as far as a valid message 3, and the listener ends with it. Each wrong proof of the code
/// spends one of three tries (``CodeInviterHandler``). So does each failed handshake with the token,
/// unless the joiner closed or timed out before its first message; it fails silently.
package final class PairingListener: Sendable {
  private struct State {
    var triesLeft = NetworkLimits.pairingTries
    /// Stays true once an exchange got as far as a valid message 3.
    var isExchanging = false
    var queue = PairingQueue()
    var listeners: [any Channel] = []
    var active: PairingChannel?
    /// Waits for ``PairingListener/accept()``, which gets it also after its end: a joiner that got so
    /// far counts.
    var arrived: PairingChannel?
    var waiter: CheckedContinuation<PairingChannel, any Error>?
    var end: PairingError?
    var timer: Scheduled<Void>?
  }

  let configuration: PairingConfiguration
  let token: SharedPresharedKey
  let code: PairingCode?
  let invitation: [UInt8]
  let gate = Gate(
    limit: NetworkLimits.pairingHalfOpen, limitPerAddress: NetworkLimits.pairingHalfOpen)
  let parameters: NoiseParameters
  private let onWrongProof: @Sendable (_ triesLeft: Int) -> Void
  private let channels = ChannelTable()
  private let state = Mutex(State())

  /// Makes a listener that is not running yet.
  ///
  /// Only the transport key of `keys` is used. The joiner gets the 32 bytes of `token` in another
  /// way, or uses `code`. `invitation` is the payload of message 2. `onWrongProof` is called after
  /// a wrong code, on an event-loop thread.
  package init(
    keys: DeviceKeys, token: SharedPresharedKey, code: PairingCode? = nil, invitation: [UInt8],
    configuration: PairingConfiguration = PairingConfiguration(),
    entropy: any Entropy = SystemRandom(),
    onWrongProof: @escaping @Sendable (_ triesLeft: Int) -> Void = { _ in }
  ) {
    self.token = token
    self.code = code
    self.onWrongProof = onWrongProof
    self.invitation = invitation
    self.configuration = configuration
    parameters = NoiseParameters(
      prologue: NoiseParameters.pairingPrologue, keys: keys, entropy: SharedEntropy(entropy))
  }

  /// Starts to listen, and the invitation's time.
  @discardableResult
  package func bind() async throws -> [PeerAddress] {
    let bound = try await Bootstraps.bind(
      hosts: configuration.hosts, port: configuration.port,
      userTimeout: configuration.handshakeTimeout
    ) { try self.accept($0) }
    let timer = Bootstraps.group.next().scheduleTask(in: TimeAmount(configuration.lifetime)) {
      self.end(.expired)
    }
    state.withLock { state in
      state.listeners += bound
      state.timer = timer
    }
    return try bound.map { try PeerAddress(bound: $0) }
  }

  /// Waits for the joiner whose handshake succeeds.
  ///
  /// Throws `triesExhausted`, `expired`, `closed` after ``close()`` or that joiner's end, `busy` if
  /// another task waits, and `CancellationError`.
  package func accept() async throws -> PairingChannel {
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

  /// Closes the listener and every connection.
  package func close() async {
    end(.closed)
    let listeners = state.withLock { $0.listeners }
    for channel in listeners + channels.close() {
      channel.close(promise: nil)
      try? await channel.closeFuture.get()
    }
  }

  // MARK: Events of connections

  /// False: another exchange is under way.
  func begin() -> Bool {
    state.withLock { state in
      guard !state.isExchanging, state.end == nil else { return false }
      state.isExchanging = true
      return true
    }
  }

  /// Queues a joiner with a code. Calls `completion` once: the exchange may begin, or never will.
  func enqueue(
    _ id: UInt64, from bucket: AddressBucket, _ completion: @escaping PairingQueue.Completion
  ) {
    let now: PairingQueue.Verdict? = state.withLock { state in
      if state.end != nil { return .over }
      guard state.isExchanging else {
        state.isExchanging = true
        state.queue.began(bucket)
        return .begin
      }
      state.queue.wait(id, from: bucket, completion)
      return nil
    }
    if let now { completion(now) }
  }

  func leaveQueue(_ id: UInt64) {
    state.withLock { $0.queue.leave(id) }
  }

  /// An exchange ended before a valid message 3, so the next may begin.
  func finishExchange() {
    let next = state.withLock { state -> PairingQueue.Completion? in
      state.isExchanging = false
      guard state.end == nil, let next = state.queue.next() else { return nil }
      state.isExchanging = true
      return next
    }
    next?(.begin)
  }

  /// Returns the tries left.
  @discardableResult
  func spendTry() -> Int {
    let left = state.withLock { state in
      state.triesLeft = max(0, state.triesLeft - 1)
      return state.triesLeft
    }
    if left == 0 { end(.triesExhausted) }
    return left
  }

  func spendTryOfCode() -> Int {
    let left = spendTry()
    onWrongProof(left)
    return left
  }

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

  /// Ends the invitation, and the active exchange unless the tries are exhausted.
  fileprivate func end(_ error: PairingError) {
    let (waiter, active, listeners, timer, waiting) = state.withLock { state in
      if state.end == nil { state.end = error }
      return (
        state.waiter.take(), state.active.take(), state.listeners, state.timer.take(),
        state.queue.empty()
      )
    }
    timer?.cancel()
    for completion in waiting { completion(.over) }
    for listener in listeners { listener.close(promise: nil) }
    // A joining device may outlast its invitation.
    let isSpared = error == .expired && active?.isSession == true
    if error != .triesExhausted, !isSpared { active?.abort(error) }
    waiter?.resume(throwing: error)
  }

  private func accept(_ channel: any Channel) throws {
    guard channels.insert(channel) else { throw TransportError.tooManyConnections }
    let (id, _) = gate.admit(channel)
    let handshake = ListenerHandshakeHandler(
      parameters: parameters, owner: InvitingConnection(listener: self, id: id),
      timeout: TimeAmount(configuration.handshakeTimeout))
    guard let code else { return try channel.pipeline.syncOperations.addHandler(handshake) }
    try channel.pipeline.syncOperations.addHandler(
      CodeInviterHandler(
        listener: self, id: id, code: code, bucket: AddressBucket(channel.remoteAddress),
        withoutCode: handshake))
  }
}

/// The queue of an invitation: one exchange at a time. The next goes to the first waiting address
/// that did not have the last, so that one host cannot keep others out.
struct PairingQueue {
  enum Verdict: Sendable {
    case begin
    /// The invitation is over.
    case over
  }

  typealias Completion = @Sendable (Verdict) -> Void

  private var waiting: [(id: UInt64, bucket: AddressBucket, completion: Completion)] = []
  private var last: AddressBucket?

  /// An exchange began without waiting.
  mutating func began(_ bucket: AddressBucket) {
    last = bucket
  }

  /// The gate bounds how many wait.
  mutating func wait(_ id: UInt64, from bucket: AddressBucket, _ completion: @escaping Completion) {
    waiting.append((id, bucket, completion))
  }

  mutating func leave(_ id: UInt64) {
    waiting.removeAll { $0.id == id }
  }

  /// Nil: none waits.
  mutating func next() -> Completion? {
    guard let index = waiting.firstIndex(where: { $0.bucket != last }) ?? waiting.indices.first
    else { return nil }
    let next = waiting.remove(at: index)
    last = next.bucket
    return next.completion
  }

  mutating func empty() -> [Completion] {
    defer { waiting = [] }
    return waiting.map(\.completion)
  }
}

/// A connection to an invitation before its exchange. Belongs to its channel's event loop.
final class InvitingConnection: ListenerHandshakeOwner {
  private let listener: PairingListener
  private let id: UInt64
  private var isExchanging: Bool
  /// Another exchange was under way, so this one spends no try.
  private var isRejected = false
  /// The key of a joiner that has proved the code; nil: the joiner has the token.
  private let codeKey: SharedPresharedKey?

  init(listener: PairingListener, id: UInt64, codeKey: SharedPresharedKey? = nil) {
    self.listener = listener
    self.id = id
    self.codeKey = codeKey
    isExchanging = codeKey != nil
  }

  func presharedKeys() -> [SharedPresharedKey] { [codeKey ?? listener.token] }

  func accepts(ephemeral: TransportPublicKey) -> Bool {
    if codeKey != nil { return listener.gate.accept(id, ephemeral: ephemeral) }
    guard listener.begin() else {
      isRejected = true
      return false
    }
    isExchanging = true
    return listener.gate.accept(id, ephemeral: ephemeral)
  }

  func reply(to offer: [UInt8]) -> [UInt8]? { listener.invitation }

  func finished(
    _ exchange: NoiseExchange, payload: [UInt8], pskIndex: Int, context: ChannelHandlerContext
  ) -> SessionHandler? {
    let remote = context.channel.remoteAddress
    let (listener, id) = (listener, id)
    let handler = PairingChannel.handler(
      exchange, payload: payload,
      address: IPAddressText.endpoint(
        IPAddressText.host(of: remote) ?? "unknown", remote?.port ?? 0),
      linger: listener.configuration.lingerTimeout,
      ready: { listener.arrived($0) }, over: { listener.end(.closed) })
    if handler != nil { listener.gate.leave(id) }
    return handler
  }

  func failed(_ failure: ListenerHandshakeFailure) {
    switch failure {
    case .noFirstMessage:
      break
    case .wrongMessage, .noThirdMessage:
      if !isRejected, codeKey == nil { listener.spendTry() }
    }
    guard isExchanging else { return }
    isExchanging = false
    listener.finishExchange()
  }
}
