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
    // A write that fails ends the channel before it returns. A handler that is added afterwards would
    // never hear of the end.
    guard !isOver else { return }
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

/// Called on the channel's event loop.
protocol ListenerHandshakeOwner: AnyObject {
  /// Returns the keys in the order of trying.
  func presharedKeys() -> [SharedPresharedKey]
  /// Returns the payload of message 2; nil ends the handshake.
  func reply(to offer: [UInt8]) -> [UInt8]?
  /// Called when message 1 is authentic; false refuses it, for example a replay.
  func accepts(ephemeral: TransportPublicKey) -> Bool
  /// Called when message 3 is authentic. Returns the next handler; nil ends the handshake.
  func finished(
    _ exchange: NoiseExchange, payload: [UInt8], pskIndex: Int, context: ChannelHandlerContext
  ) -> SessionHandler?
  /// Called once, unless there is a next handler.
  func failed(_ failure: ListenerHandshakeFailure)
}

enum ListenerHandshakeFailure {
  /// No valid message 1 or 3.
  case wrongMessage
  /// No complete message 1 came in time, or before the connection closed.
  case noFirstMessage
  /// No complete message 3 came in time, or before the connection closed.
  case noThirdMessage
}

/// The listener's side of a handshake.
///
/// It writes nothing before an authentic first message. After a failure it silently discards a
/// limited number of bytes, and closes at the timeout, counted from accepting.
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
    end(as: .finished)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let incoming = unwrapInboundIn(data)
    if case .silent = stage { return discard(incoming.readableBytes, context) }
    buffer.append(incoming)
    do {
      while let message = try buffer.next() {
        switch stage {
        case .awaitingFirst: readFirst(message, context)
        case .awaitingThird(let exchange, let index): readThird(message, exchange, index, context)
        case .silent, .finished: return
        }
        guard case .awaitingThird = stage else { return }
      }
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
    if case .finished = stage { return }
    end(as: .silent)
    context.close(promise: nil)
  }

  private func end(as last: Stage) {
    switch stage {
    case .awaitingFirst: owner.failed(.noFirstMessage)
    case .awaitingThird: owner.failed(.noThirdMessage)
    case .silent, .finished: break
    }
    stage = last
  }
}

/// The initiators' ephemeral keys answered last: a copied first message gets no second reply.
struct AnsweredEphemerals {
  private let limit: Int
  private var ring: [TransportPublicKey] = []
  private var oldest = 0
  private var members: Set<TransportPublicKey> = []

  init(limit: Int = NetworkLimits.answeredEphemerals) {
    self.limit = limit
  }

  /// Returns false if the key is stored already. If full, replaces the oldest.
  ///
  /// - Complexity: O(1).
  mutating func insert(_ key: TransportPublicKey) -> Bool {
    guard members.insert(key).inserted else { return false }
    if ring.count < limit {
      ring.append(key)
    } else {
      members.remove(ring[oldest])
      ring[oldest] = key
      oldest = (oldest + 1) % limit
    }
    return true
  }
}
