package import KithCore
package import KithCrypto
internal import NIOCore

/// Connects a joiner to an invitation, and shakes hands under its token or code.
package struct PairingDialler: Sendable {
  /// Makes the payload of message 3 from message 2's, on an event-loop thread. If it throws, the
  /// inviter learns nothing.
  package typealias Answer =
    @Sendable (_ invitation: [UInt8], _ inviter: TransportPublicKey) throws -> [UInt8]

  private let configuration: PairingConfiguration
  private let parameters: NoiseParameters

  /// Uses only the transport key of `keys`.
  package init(
    keys: DeviceKeys, configuration: PairingConfiguration = PairingConfiguration(),
    entropy: any Entropy = SystemRandom()
  ) {
    self.configuration = configuration
    parameters = NoiseParameters(
      prologue: NoiseParameters.pairingPrologue, keys: keys, entropy: SharedEntropy(entropy))
  }

  /// Connects with a token of 32 bytes.
  ///
  /// - Returns: The exchange, not yet confirmed by the inviter.
  /// - Throws: ``PairingError``, or the error of `answer`.
  package func connect(
    to address: PeerAddress, token: SharedPresharedKey, answer: @escaping Answer
  ) async throws -> PairingChannel {
    try await connect(to: address, answer) { owner in
      DiallerHandshakeHandler(
        exchange: try parameters.start(.initiator, psk: token), owner: owner,
        timeout: TimeAmount(configuration.handshakeTimeout))
    }
  }

  /// As with a token, but proves the code first, which costs an exchange.
  package func connect(
    to address: PeerAddress, code: TypedCode, answer: @escaping Answer
  ) async throws -> PairingChannel {
    try await connect(to: address, answer) { owner in
      CodeJoinerHandler(
        code: code, address: address, parameters: parameters, configuration: configuration,
        owner: owner, outcome: owner.outcome)
    }
  }

  private func connect(
    to address: PeerAddress, _ answer: @escaping Answer,
    handler: @escaping @Sendable (JoiningConnection) throws -> any ChannelHandler
  ) async throws -> PairingChannel {
    let linger = configuration.lingerTimeout
    let (channels, outcome) = AsyncThrowingStream<PairingChannel, any Error>.makeStream()
    let connected = Bootstraps.connect(
      to: address, userTimeout: configuration.handshakeTimeout
    ) {
      try handler(
        JoiningConnection(address: address, linger: linger, answer: answer, outcome: outcome))
    }
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
  private let answer: PairingDialler.Answer
  let outcome: PairingOutcome
  private var invitation: [UInt8] = []

  init(
    address: PeerAddress, linger: Duration, answer: @escaping PairingDialler.Answer,
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

  func finished(_ exchange: NoiseExchange) -> SessionHandler? {
    PairingChannel.handler(
      exchange, payload: invitation, address: address.description, linger: linger,
      ready: { [outcome] in outcome.yield($0) })
  }

  func failed(_ error: (any Error)?) {
    outcome.finish(throwing: error ?? PairingError.wrongToken(address: address))
  }
}

package indirect enum PairingError: Error, Hashable, Sendable, CustomStringConvertible {
  case cannotConnect(NetworkFailure)
  /// The other side closed silently: it has another token, or the invitation is over.
  case wrongToken(address: PeerAddress)
  case expired
  /// The invitation ended while the joiner waited for its turn; nothing is known of the code.
  case invitationOver(address: PeerAddress)
  case triesExhausted
  /// Another exchange is under way, or another task waits.
  case busy
  /// The inviter has another code; `nil`: the number of tries is unknown.
  case wrongCode(address: PeerAddress, triesLeft: Int?)
  /// The host takes no codes, or did not answer in time.
  case noInviter(address: PeerAddress)
  /// The code was proved to the maximum number of inviters.
  case exchangesSpent
  /// The other side closed or sent a malformed message.
  case closed
  /// The reasons in the order of trying.
  case noneAnswered([PairingError])
  case messageTooLong(bytes: Int, limit: Int)

  package var description: String {
    let (fact, advice) = words
    return advice.map { "\(fact); \($0)" } ?? fact
  }

  private var words: (fact: String, advice: String?) {
    switch self {
    case .cannotConnect(let failure): ("\(failure)", Self.checkAddress)
    case .wrongToken(let address):
      (
        "\(address) does not accept the code",
        "check it for typing errors, or make a new invitation"
      )
    case .expired: ("the invitation has expired", "make a new one")
    case .invitationOver(let address):
      ("the invitation of the device at \(address) is over", "make a new one")
    case .triesExhausted: ("too many wrong codes were tried", "make a new invitation")
    case .busy: ("an exchange is under way already", "wait for it to end")
    case .wrongCode(let address, let triesLeft):
      switch triesLeft {
      case nil: ("the device at \(address) does not have this code", "check it")
      case 0:
        (
          "the device at \(address) has another code, and its invitation is over",
          "make a new one"
        )
      case let left?:
        (
          "the device at \(address) has another code",
          "check it (\(left == 1 ? "1 try" : "\(left) tries") left)"
        )
      }
    case .noInviter(let address): ("nobody at \(address) takes a code now", Self.checkAddress)
    case .exchangesSpent:
      (
        "\(NetworkLimits.pairingExchanges) devices were asked and none has this code",
        "check it, or name the inviting device's address"
      )
    case .closed: ("the other side ended the exchange", "make a new invitation")
    case .noneAnswered(let errors):
      (errors.map { $0.words.fact }.joined(separator: ", "), Self.checkAddress)
    case .messageTooLong(let bytes, let limit):
      ("a pairing message of \(bytes) bytes exceeds \(limit) bytes", nil)
    }
  }

  private static let checkAddress =
    "check the address, and that `kith invite` is running; a code or token admits one device"
}
