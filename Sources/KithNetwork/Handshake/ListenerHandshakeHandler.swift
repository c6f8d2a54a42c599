internal import KithCrypto
internal import NIOCore

/// What a listener's handshake needs from whoever accepted the connection. Called on the
/// channel's event loop.
protocol ListenerHandshakeOwner: AnyObject {
  /// The pre-shared keys to try, in order.
  func presharedKeys() -> [SharedPresharedKey]
  /// The payload of message 2 for that of message 1; nil ends the handshake.
  func reply(to offer: [UInt8]) -> [UInt8]?
  /// Message 1 authenticated; false: it was answered before.
  func accepts(ephemeral: TransportPublicKey) -> Bool
  /// Message 3 authenticated. Gives the handler that takes over; nil ends the handshake.
  func finished(
    _ exchange: NoiseExchange, payload: [UInt8], pskIndex: Int, context: ChannelHandlerContext
  ) -> SessionHandler?
  /// The handshake failed, by its bytes or by its time.
  func failed(_ failure: ListenerHandshakeFailure)
  /// The connection is closed, and no handler has taken over.
  func closed()
}

/// How a listener's handshake failed.
enum ListenerHandshakeFailure {
  /// The bytes were no valid message 1 or 3.
  case wrongMessage
  /// No whole message 1 came in time.
  case noFirstMessage
  /// No whole message 3 came in time.
  case noThirdMessage
}

/// The listener's side of a handshake.
///
/// It writes nothing until a first message authenticates, and however a handshake fails, it falls
/// silent: it goes on reading a little, throws that away, and closes when the time is over that
/// every handshake has, counted from accepting.
final class ListenerHandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private enum Stage {
    case awaitingFirst
    case awaitingThird(NoiseExchange, pskIndex: Int)
    case silent
    case finished
  }

  private let parameters: NoiseParameters
  private let owner: any ListenerHandshakeOwner
  private let timeout: TimeAmount
  private var stage = Stage.awaitingFirst
  private var buffer = HandshakeBuffer()
  private var discardedBytes = 0
  private var deadline: Scheduled<Void>?

  init(parameters: NoiseParameters, owner: any ListenerHandshakeOwner, timeout: TimeAmount) {
    self.parameters = parameters
    self.owner = owner
    self.timeout = timeout
  }

  func handlerAdded(context: ChannelHandlerContext) {
    deadline = context.eventLoop.assumeIsolated().scheduleTask(in: timeout) {
      self.expire(context)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    deadline?.cancel()
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    switch stage {
    case .finished:
      break
    case .awaitingThird:
      owner.failed(.noThirdMessage)
      owner.closed()
    case .awaitingFirst, .silent:
      owner.closed()
    }
    stage = .finished
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var incoming = unwrapInboundIn(data)
    if case .silent = stage { return discard(incoming.readableBytes, context) }
    buffer.append(&incoming)
    do {
      while let message = try buffer.next() {
        switch stage {
        case .awaitingFirst: readFirst(message, context)
        case .awaitingThird(let exchange, let index): readThird(message, exchange, index, context)
        case .silent, .finished: return
        }
        guard case .awaitingThird = stage else { return }
      }
      if buffer.isOverLimit { fall(context) }
    } catch {
      fall(context)
    }
  }

  private func readFirst(_ message: [UInt8], _ context: ChannelHandlerContext) {
    for (index, psk) in owner.presharedKeys().prefix(NetworkLimits.presharedKeys).enumerated() {
      guard let exchange = try? parameters.start(.responder, psk: psk),
        let offer = try? exchange.read(message)
      else { continue }
      guard let ephemeral = try? TransportPublicKey(message.prefix(TransportPublicKey.byteCount)),
        owner.accepts(ephemeral: ephemeral), let reply = owner.reply(to: offer),
        let answer = try? exchange.write(reply)
      else { break }
      stage = .awaitingThird(exchange, pskIndex: index)
      context.writeHandshakeMessage(answer)
      return
    }
    fall(context)
  }

  private func readThird(
    _ message: [UInt8], _ exchange: NoiseExchange, _ pskIndex: Int,
    _ context: ChannelHandlerContext
  ) {
    guard let payload = try? exchange.read(message),
      let next = owner.finished(exchange, payload: payload, pskIndex: pskIndex, context: context)
    else { return fall(context) }
    stage = .finished
    deadline?.cancel()
    next.install(insteadOf: self, context: context, rest: buffer.takeRest())
  }

  private func fall(_ context: ChannelHandlerContext) {
    stage = .silent
    owner.failed(.wrongMessage)
    discard(buffer.takeRest().readableBytes, context)
  }

  private func discard(_ count: Int, _ context: ChannelHandlerContext) {
    discardedBytes += count
    guard discardedBytes > NetworkLimits.discardedBytes else { return }
    try? context.channel.syncOptions?.setOption(.autoRead, value: false)
  }

  private func expire(_ context: ChannelHandlerContext) {
    switch stage {
    case .awaitingFirst: owner.failed(.noFirstMessage)
    case .awaitingThird: owner.failed(.noThirdMessage)
    case .silent: break
    case .finished: return
    }
    stage = .silent
    context.close(promise: nil)
  }
}
