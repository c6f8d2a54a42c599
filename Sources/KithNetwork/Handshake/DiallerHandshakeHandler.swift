internal import KithCrypto
internal import NIOCore

/// Called on the channel's event loop.
protocol DiallerHandshakeOwner: AnyObject {
  /// Returns the payload of message 1.
  func offer() -> [UInt8]
  /// Called with the payload of message 2. Returns that of message 3; an error ends the handshake.
  func answer(to reply: [UInt8], from key: TransportPublicKey) throws -> [UInt8]
  /// Called after message 3. Returns the next handler; nil ends the handshake.
  func finished(_ exchange: NoiseExchange) -> SessionHandler?
  /// Called once, before closing, with the owner's own error; nil: the listener closed or sent nothing
  /// in time, as it does if the dialler lacks the key; it sent something invalid; or the owner
  /// returned no handler.
  func failed(_ error: (any Error)?)
}

final class DiallerHandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer

  private let exchange: NoiseExchange
  private let owner: any DiallerHandshakeOwner
  private let timeout: TimeAmount
  private var buffer = HandshakeBuffer()
  private var isOver = false
  private var deadline: Scheduled<Void>?

  init(exchange: NoiseExchange, owner: any DiallerHandshakeOwner, timeout: TimeAmount) {
    self.exchange = exchange
    self.owner = owner
    self.timeout = timeout
  }

  func handlerAdded(context: ChannelHandlerContext) {
    deadline = context.eventLoop.assumeIsolated().scheduleTask(in: timeout) {
      self.fail(context)
    }
    guard let message = try? exchange.write(owner.offer()) else {
      return fail(context)
    }
    context.writeHandshakeMessage(message)
  }

  /// Called without `channelInactive` if the connection ended while the handler was added.
  func handlerRemoved(context: ChannelHandlerContext) {
    fail(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    fail(context)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    fail(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return }
    buffer.append(unwrapInboundIn(data))
    do {
      guard let message = try buffer.next() else { return }
      guard let payload = try? exchange.read(message), let key = exchange.remoteStaticKey else {
        return fail(context)
      }
      finish(payload, key, context)
    } catch {
      fail(context)
    }
  }

  private func finish(
    _ payload: [UInt8], _ key: TransportPublicKey, _ context: ChannelHandlerContext
  ) {
    let answer: [UInt8]
    do {
      answer = try owner.answer(to: payload, from: key)
    } catch {
      return fail(context, error)
    }
    guard let message = try? exchange.write(answer) else { return fail(context) }
    context.writeHandshakeMessage(message)
    guard let next = owner.finished(exchange) else {
      return fail(context)
    }
    isOver = true
    deadline?.cancel()
    next.install(insteadOf: self, context: context, rest: buffer.takeRest())
  }

  private func fail(_ context: ChannelHandlerContext, _ error: (any Error)? = nil) {
    guard !isOver else { return }
    isOver = true
    deadline?.cancel()
    owner.failed(error)
    context.close(promise: nil)
  }
}
