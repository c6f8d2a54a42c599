import NIOCore

/// Limits the time in which a request may arrive. The server's own limit counts from the last byte, so
/// that a peer which sends one now and then could keep its connection for ever, also behind an answer.
struct RequestTime {
  static let longest = TimeAmount.seconds(60)

  /// The first part that was read since the last that was written.
  private var since: NIODeadline?

  /// Notes that a part was read. Returns false if the connection must be closed.
  mutating func read(at now: NIODeadline) -> Bool {
    let since = since ?? now
    self.since = since
    return now - since < Self.longest
  }

  /// Notes that a part of an answer was written. It comes after its request, unless the rest of that
  /// is read only to be discarded.
  mutating func wrote() { since = nil }
}

/// Closes connections by ``RequestTime``. Parts of any type pass unchanged.
final class RequestTimeHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny
  typealias OutboundIn = NIOAny

  private var time = RequestTime()

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard time.read(at: context.eventLoop.now) else { return context.close(promise: nil) }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    time.wrote()
    context.write(data, promise: promise)
  }
}
