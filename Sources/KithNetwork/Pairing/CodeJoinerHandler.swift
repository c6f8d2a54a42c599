package import KithCore
internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// The joiner's side of a ``CodeExchange``, then the handshake under its key.
final class CodeJoinerHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private enum Stage {
    case awaitingOffer
    case awaitingConfirmation
    case over
  }

  private let code: TypedCode
  private let address: PeerAddress
  private let parameters: NoiseParameters
  private let configuration: PairingConfiguration
  private let owner: any DiallerHandshakeOwner
  private let outcome: PairingOutcome
  private var joiner: CodeJoiner
  private var stage = Stage.awaitingOffer
  /// A refusal has one byte.
  private var buffer = HandshakeBuffer(leastMessageBytes: 1)
  private var deadline: Scheduled<Void>?

  init(
    code: TypedCode, address: PeerAddress, parameters: NoiseParameters,
    configuration: PairingConfiguration, owner: any DiallerHandshakeOwner,
    outcome: PairingOutcome
  ) {
    self.code = code
    self.address = address
    self.parameters = parameters
    self.configuration = configuration
    self.owner = owner
    self.outcome = outcome
    joiner = parameters.entropy.use { CodeJoiner(code: code.code, entropy: &$0) }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    // Longer than the inviter waits, so that the inviter can report that it is busy.
    wait(configuration.turnTimeout + configuration.handshakeTimeout, context)
    context.writeHandshakeMessage(joiner.hello)
  }

  /// Without `channelInactive` if the connection ended while the handler was added.
  func handlerRemoved(context: ChannelHandlerContext) {
    giveUp(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    giveUp(context)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    giveUp(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .over = stage { return }
    buffer.append(unwrapInboundIn(data))
    do {
      guard let message = try buffer.next() else { return }
      if message.count == 1 { return refused(message[0], context) }
      switch stage {
      case .awaitingOffer: try prove(message, context)
      case .awaitingConfirmation: try finish(message, context)
      case .over: break
      }
    } catch {
      giveUp(context)
    }
  }

  private func prove(_ offer: [UInt8], _ context: ChannelHandlerContext) throws {
    let proof = try parameters.entropy.use { entropy throws(CodeExchangeError) in
      try joiner.prove(to: offer, entropy: &entropy)
    }
    // Counted before sending: the receiver can check one guess.
    guard code.spendExchange() else { return end(.exchangesSpent, context) }
    stage = .awaitingConfirmation
    wait(configuration.handshakeTimeout, context)
    context.writeHandshakeMessage(proof)
  }

  private func finish(_ confirmation: [UInt8], _ context: ChannelHandlerContext) throws {
    let agreement = try joiner.finish(confirmation)
    var parameters = parameters
    parameters.prologue = agreement.prologue
    let key = SharedPresharedKey(agreement.presharedKey.copy())
    let handler = DiallerHandshakeHandler(
      exchange: try parameters.start(.initiator, psk: key), owner: owner,
      timeout: TimeAmount(configuration.handshakeTimeout))
    stage = .over
    deadline?.cancel()
    do {
      try context.giveWay(from: self, to: handler, rest: buffer.takeRest())
    } catch {
      outcome.finish(throwing: PairingError.closed)
      context.close(promise: nil)
    }
  }

  private func refused(_ reason: UInt8, _ context: ChannelHandlerContext) {
    if reason == .max { return end(.busy, context) }
    if case .awaitingOffer = stage, reason != 0 { return giveUp(context) }
    let left = Int(min(reason, UInt8(NetworkLimits.pairingTries)))
    end(.wrongCode(address: address, triesLeft: left), context)
  }

  private func giveUp(_ context: ChannelHandlerContext) {
    switch stage {
    case .awaitingOffer: end(.noInviter(address: address), context)
    case .awaitingConfirmation: end(.wrongCode(address: address, triesLeft: nil), context)
    case .over: break
    }
  }

  private func end(_ error: PairingError, _ context: ChannelHandlerContext) {
    stage = .over
    deadline?.cancel()
    outcome.finish(throwing: error)
    context.close(promise: nil)
  }

  private func wait(_ time: Duration, _ context: ChannelHandlerContext) {
    deadline?.cancel()
    deadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) {
      self.giveUp(context)
    }
  }
}

/// A code as typed once. Each proof lets one inviter check one guess, so its exchanges are few.
package final class TypedCode: Sendable {
  let code: PairingCode
  private let exchangesLeft = Mutex(NetworkLimits.pairingExchanges)

  package init(_ code: PairingCode) {
    self.code = code
  }

  package var isSpent: Bool { exchangesLeft.withLock { $0 == 0 } }

  /// False: none is left.
  func spendExchange() -> Bool {
    exchangesLeft.withLock { left in
      guard left > 0 else { return false }
      left -= 1
      return true
    }
  }
}
