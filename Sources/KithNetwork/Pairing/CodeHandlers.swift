package import KithCore
internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// The inviter's side of a ``CodeExchange``, then the handshake under its key.
///
/// A first message of a hello's length begins an exchange; one long enough for a handshake uses the
/// token. A wrong proof is answered by one byte: the tries left. Instead of an offer, 0 means that the
/// invitation is over, and 255 that the turn did not come in time.
final class CodeInviterHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private enum Stage {
    case awaitingHello
    case waiting(hello: [UInt8])
    case awaitingProof
    case over
  }

  private let listener: PairingListener
  private let id: UInt64
  private let bucket: AddressBucket
  private let withoutCode: ListenerHandshakeHandler
  private var inviter: CodeInviter
  private var stage = Stage.awaitingHello
  private var buffer = HandshakeBuffer(leastMessageBytes: CodeExchange.helloBytes)
  private var deadline: Scheduled<Void>?

  init(
    listener: PairingListener, id: UInt64, code: PairingCode, bucket: AddressBucket,
    withoutCode: ListenerHandshakeHandler
  ) {
    self.listener = listener
    self.id = id
    self.bucket = bucket
    self.withoutCode = withoutCode
    inviter = CodeInviter(code: code)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    wait(listener.configuration.handshakeTimeout, context)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    deadline?.cancel()
  }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .over = stage { return }
    buffer.append(unwrapInboundIn(data))
    if case .awaitingHello = stage, let length = buffer.nextLength,
      length >= NetworkLimits.leastFirstMessageBytes
    {
      return giveWay(to: withoutCode, context)
    }
    do {
      guard let message = try buffer.next() else { return }
      switch stage {
      case .awaitingHello: waitInQueue(message, context)
      case .awaitingProof: check(message, context)
      // Nothing may arrive before the offer.
      case .waiting, .over: context.close(promise: nil)
      }
    } catch {
      context.close(promise: nil)
    }
  }

  private func waitInQueue(_ hello: [UInt8], _ context: ChannelHandlerContext) {
    stage = .waiting(hello: hello)
    wait(listener.configuration.queueTimeout, context)
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let eventLoop = context.eventLoop
    let listener = listener
    listener.enqueue(id, from: bucket) { verdict in
      eventLoop.execute {
        let (handler, context) = bound.value
        switch verdict {
        case .begin: handler.begin(context)
        case .over: handler.refuse(0, context)
        }
      }
    }
  }

  private func begin(_ context: ChannelHandlerContext) {
    guard case .waiting(let hello) = stage else {
      // Closed before its turn.
      return listener.finishExchange()
    }
    stage = .awaitingProof
    wait(listener.configuration.handshakeTimeout, context)
    let offer = try? listener.parameters.entropy.use { entropy throws(CodeExchangeError) in
      try inviter.offer(to: hello, entropy: &entropy)
    }
    guard let offer else { return context.close(promise: nil) }
    context.writeHandshakeMessage(offer)
  }

  private func check(_ message: [UInt8], _ context: ChannelHandlerContext) {
    do throws(CodeExchangeError) {
      let agreement = try inviter.confirm(message)
      context.writeHandshakeMessage(agreement.confirmation)
      // A write that fails ends the channel, and with it the exchange, before it returns.
      if case .over = stage { return }
      var parameters = listener.parameters
      parameters.prologue = agreement.prologue
      let key = SharedPresharedKey(agreement.presharedKey.copy())
      giveWay(
        to: ListenerHandshakeHandler(
          parameters: parameters,
          owner: InvitingConnection(listener: listener, id: id, codeKey: key),
          timeout: TimeAmount(listener.configuration.handshakeTimeout)), context)
    } catch {
      guard error == .wrongProof else { return context.close(promise: nil) }
      // Spent before the next exchange may begin, so that no two count as one.
      refuse(UInt8(clamping: listener.spendTryOfCode()), context)
    }
  }

  private func giveWay(to handler: ListenerHandshakeHandler, _ context: ChannelHandlerContext) {
    let last = stage
    // The next handler takes over the exchange, if any.
    stage = .over
    deadline?.cancel()
    do {
      try context.giveWay(from: self, to: handler, rest: buffer.takeRest())
    } catch {
      stage = last
      context.close(promise: nil)
    }
  }

  private func refuse(_ reason: UInt8, _ context: ChannelHandlerContext) {
    if case .over = stage { return }
    end()
    context.writeHandshakeMessage([reason]).whenComplete { [channel = context.channel] _ in
      channel.close(promise: nil)
    }
  }

  private func wait(_ time: Duration, _ context: ChannelHandlerContext) {
    deadline?.cancel()
    deadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) {
      if case .waiting = self.stage { return self.refuse(.max, context) }
      context.close(promise: nil)
    }
  }

  private func end() {
    deadline?.cancel()
    let last = stage
    stage = .over
    switch last {
    case .waiting: listener.leaveQueue(id)
    case .awaitingProof: listener.finishExchange()
    case .awaitingHello, .over: break
    }
  }
}

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
    wait(configuration.queueTimeout + configuration.handshakeTimeout, context)
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
    if case .awaitingOffer = stage {
      guard reason == 0 else { return giveUp(context) }
      return end(.invitationOver(address: address), context)
    }
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
