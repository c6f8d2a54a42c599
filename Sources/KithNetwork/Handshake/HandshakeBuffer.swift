internal import NIOCore

/// Collects the frames of a handshake, never more than ``NetworkLimits/handshakeBytes`` of them.
struct HandshakeBuffer {
  /// The length cannot be one of a handshake message.
  struct Malformed: Error {}

  private var bytes = ByteBuffer()
  private var consumed = 0
  private let leastMessageBytes: Int

  /// A buffer for messages of at least so many bytes.
  init(leastMessageBytes: Int = NetworkLimits.leastFirstMessageBytes) {
    self.leastMessageBytes = leastMessageBytes
  }

  /// The length of the message that comes next; nil: more bytes are needed.
  var nextLength: Int? {
    bytes.getInteger(at: bytes.readerIndex, as: UInt16.self).map { Int($0) }
  }

  /// Adds what came.
  mutating func append(_ incoming: inout ByteBuffer) {
    bytes.writeBuffer(&incoming)
  }

  /// Takes the next message; nil: more bytes are needed.
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

  /// Whether more bytes wait than a handshake may have.
  var isOverLimit: Bool { consumed + bytes.readableBytes > NetworkLimits.handshakeBytes }

  /// What came after the last message.
  mutating func takeRest() -> ByteBuffer {
    defer { bytes = ByteBuffer() }
    return bytes
  }
}

extension ChannelHandlerContext {
  /// Sends a message before or in a handshake, behind its length.
  @discardableResult
  func writeHandshakeMessage(_ message: [UInt8]) -> EventLoopFuture<Void> {
    var frame = channel.allocator.buffer(
      capacity: NetworkLimits.frameLengthBytes + message.count)
    frame.writeInteger(UInt16(message.count))
    frame.writeBytes(message)
    return writeAndFlush(NIOAny(frame))
  }

  /// Has another handler take over from one, with the bytes that came behind the last message.
  func giveWay(
    from own: some RemovableChannelHandler & ChannelHandler, to handler: some ChannelHandler,
    rest: ByteBuffer
  ) throws {
    try channel.pipeline.syncOperations.addHandler(handler, position: .after(own))
    if rest.readableBytes > 0 { fireChannelRead(NIOAny(rest)) }
    channel.pipeline.syncOperations.removeHandler(own, promise: nil)
  }
}
