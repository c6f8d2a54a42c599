internal import NIOCore

/// Holds at most ``NetworkLimits/handshakeBytes``.
struct HandshakeBuffer {
  /// An impossible length.
  struct Malformed: Error {}

  private var bytes = ByteBuffer()
  private var consumed = 0
  private let leastMessageBytes: Int

  init(leastMessageBytes: Int = NetworkLimits.leastFirstMessageBytes) {
    self.leastMessageBytes = leastMessageBytes
  }

  /// Nil: more bytes are needed.
  var nextLength: Int? {
    bytes.getInteger(at: bytes.readerIndex, as: UInt16.self).map { Int($0) }
  }

  mutating func append(_ incoming: ByteBuffer) {
    bytes.writeImmutableBuffer(incoming)
  }

  /// Nil: more bytes are needed.
  mutating func next() throws(Malformed) -> [UInt8]? {
    guard let length = nextLength else { return nil }
    let frameBytes = NetworkLimits.frameLengthBytes + length
    guard length >= leastMessageBytes,
      consumed + frameBytes <= NetworkLimits.handshakeBytes
    else { throw Malformed() }
    guard bytes.readableBytes >= frameBytes else { return nil }
    bytes.moveReaderIndex(forwardBy: NetworkLimits.frameLengthBytes)
    consumed += frameBytes
    return bytes.readBytes(length: length)
  }

  /// The bytes after the last message.
  mutating func takeRest() -> ByteBuffer {
    defer { bytes = ByteBuffer() }
    return bytes
  }
}

extension ChannelHandlerContext {
  /// With its length first.
  @discardableResult
  func writeHandshakeMessage(_ message: [UInt8]) -> EventLoopFuture<Void> {
    var frame = channel.allocator.buffer(
      capacity: NetworkLimits.frameLengthBytes + message.count)
    frame.writeInteger(UInt16(message.count))
    frame.writeBytes(message)
    return writeAndFlush(NIOAny(frame))
  }

  /// `rest`: the bytes after the last message.
  func giveWay(
    from own: some RemovableChannelHandler & ChannelHandler, to handler: some ChannelHandler,
    rest: ByteBuffer
  ) throws {
    try channel.pipeline.syncOperations.addHandler(handler, position: .after(own))
    if rest.readableBytes > 0 { fireChannelRead(NIOAny(rest)) }
    channel.pipeline.syncOperations.removeHandler(own, promise: nil)
  }
}
