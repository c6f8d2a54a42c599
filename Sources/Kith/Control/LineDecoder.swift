internal import NIOCore

/// Cuts what arrives into lines, none longer than ``ControlLimits/lineBytes``.
struct LineDecoder: NIOSingleStepByteToMessageDecoder {
  typealias InboundOut = ByteBuffer

  /// How many bytes of the line under way hold no line feed.
  private var searched = 0

  mutating func decode(buffer: inout ByteBuffer) throws -> ByteBuffer? {
    let view = buffer.readableBytesView
    if let end = view[view.index(view.startIndex, offsetBy: searched)...].firstIndex(of: 0x0A) {
      let length = view.distance(from: view.startIndex, to: end)
      searched = 0
      let line = buffer.readSlice(length: length)
      buffer.moveReaderIndex(forwardBy: 1)
      return line
    }
    searched = view.count
    guard searched <= ControlLimits.lineBytes else { throw KithError.malformedControl }
    return nil
  }

  mutating func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> ByteBuffer? {
    try decode(buffer: &buffer)
  }
}

/// Closes a connection whose first line does not come in time, and one whose lines are too long.
final class FirstLineTimeout: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private var timer: Scheduled<Void>?

  func handlerAdded(context: ChannelHandlerContext) {
    let channel = context.channel
    timer = context.eventLoop.scheduleTask(in: .seconds(ControlLimits.firstRequestSeconds)) {
      channel.close(promise: nil)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    timer?.cancel()
    timer = nil
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }
}

/// Feeds ``LineDecoder`` with what arrives.
final class LineHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private let processor = NIOSingleStepByteToMessageProcessor(
    LineDecoder(), maximumBufferSize: ControlLimits.lineBytes + 65_536)

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    do {
      try processor.process(buffer: unwrapInboundIn(data)) { line in
        context.fireChannelRead(wrapInboundOut(line))
      }
    } catch {
      context.close(promise: nil)
    }
  }
}
