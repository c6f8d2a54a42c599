package import KithCore
package import KithCrypto
package import NIOCore

/// Connects a joiner to an invitation, and shakes hands under its token or code.
package struct PairingDialler: Sendable {
  private let configuration: PairingConfiguration
  private let keys: DeviceKeys
  private let group: any EventLoopGroup
  private let entropy: SharedEntropy

  /// Uses only the transport key of `keys`. The caller shuts down the event loops.
  package init(
    keys: DeviceKeys, configuration: PairingConfiguration = PairingConfiguration(),
    eventLoopGroup: any EventLoopGroup, entropy: any Entropy = SystemRandom()
  ) {
    self.keys = keys
    self.configuration = configuration
    group = eventLoopGroup
    self.entropy = SharedEntropy(entropy)
  }

  /// Connects with a token of 32 bytes.
  ///
  /// `answer` makes the payload of message 3 from message 2's, on an event-loop thread. If it
  /// throws, the inviter learns nothing.
  ///
  /// - Returns: The exchange, not yet confirmed by the inviter.
  /// - Throws: ``PairingError``, or the error of `answer`.
  package func connect(
    to address: PeerAddress, token: SharedPresharedKey,
    answer:
      @escaping @Sendable (_ invitation: [UInt8], _ inviter: TransportPublicKey) throws
      -> [UInt8]
  ) async throws -> PairingChannel {
    let parameters = parameters(prologue: NoiseParameters.pairingPrologue)
    let configuration = configuration
    return try await connect(to: address) { outcome in
      DiallerHandshakeHandler(
        exchange: try parameters.start(.initiator, psk: token),
        owner: JoiningConnection(
          address: address, linger: configuration.lingerTimeout, answer: answer,
          outcome: outcome),
        timeout: TimeAmount(configuration.handshakeTimeout))
    }
  }

  /// As with a token, but proves the code first, which costs an exchange.
  package func connect(
    to address: PeerAddress, code: TypedCode,
    answer:
      @escaping @Sendable (_ invitation: [UInt8], _ inviter: TransportPublicKey) throws
      -> [UInt8]
  ) async throws -> PairingChannel {
    let parameters = parameters(prologue: [])
    let configuration = configuration
    return try await connect(to: address) { outcome in
      CodeJoinerHandler(
        code: code, address: address, parameters: parameters, configuration: configuration,
        owner: JoiningConnection(
          address: address, linger: configuration.lingerTimeout, answer: answer,
          outcome: outcome),
        outcome: outcome)
    }
  }

  private func parameters(prologue: [UInt8]) -> NoiseParameters {
    NoiseParameters(prologue: prologue, keys: keys, entropy: entropy)
  }

  private func connect(
    to address: PeerAddress,
    handler: @escaping @Sendable (PairingOutcome) throws -> any ChannelHandler
  ) async throws -> PairingChannel {
    let (channels, outcome) = AsyncThrowingStream<PairingChannel, any Error>.makeStream()
    let connected = Bootstraps.connect(
      group, to: address, connectTimeout: configuration.connectTimeout,
      userTimeout: configuration.handshakeTimeout
    ) { try handler(outcome) }
    let channel: any Channel
    do {
      channel = try await connected.get()
    } catch let failure as NetworkFailure {
      throw PairingError.cannotConnect(failure)
    }
    return try await withTaskCancellationHandler {
      for try await pairing in channels { return pairing }
      throw CancellationError()
    } onCancel: {
      // First, or closing would be the error.
      outcome.finish(throwing: CancellationError())
      channel.close(promise: nil)
    }
  }
}

/// Gets the channel, or the error; only the first counts.
typealias PairingOutcome = AsyncThrowingStream<PairingChannel, any Error>.Continuation

private final class JoiningConnection: DiallerHandshakeOwner {
  private let address: PeerAddress
  private let linger: Duration
  private let answer: @Sendable ([UInt8], TransportPublicKey) throws -> [UInt8]
  private let outcome: PairingOutcome
  private var invitation: [UInt8] = []

  init(
    address: PeerAddress, linger: Duration,
    answer: @escaping @Sendable ([UInt8], TransportPublicKey) throws -> [UInt8],
    outcome: PairingOutcome
  ) {
    self.address = address
    self.linger = linger
    self.answer = answer
    self.outcome = outcome
  }

  func offer() -> [UInt8] { [] }

  func answer(to reply: [UInt8], from key: TransportPublicKey) throws -> [UInt8] {
    invitation = reply
    return try answer(reply, key)
  }

  func finished(_ exchange: NoiseExchange, context: ChannelHandlerContext) -> SessionHandler? {
    SessionHandler.pairing(
      exchange, payload: invitation, address: address.description, channel: context.channel,
      linger: linger, ready: { [outcome] in outcome.yield($0) }, over: {})
  }

  func failed(_ failure: DiallerHandshakeFailure) {
    switch failure {
    case .silence, .wrongMessage:
      outcome.finish(throwing: PairingError.wrongToken(address: address))
    case .aborted(let error):
      outcome.finish(throwing: error)
    }
  }
}
