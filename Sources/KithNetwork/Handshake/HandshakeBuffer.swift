internal import NIOCore

/// Collects the frames of a handshake, at most ``NetworkLimits/handshakeBytes``.
struct HandshakeBuffer {
  /// The length is not possible for a handshake message.
  struct Malformed: Error {}

  private var bytes = ByteBuffer()
  private var consumed = 0
  private let leastMessageBytes: Int

  /// Makes a buffer for messages of a minimum length.
  init(leastMessageBytes: Int = NetworkLimits.leastFirstMessageBytes) {
    self.leastMessageBytes = leastMessageBytes
  }

  /// The length of the next message; nil: more bytes are needed.
  var nextLength: Int? {
    bytes.getInteger(at: bytes.readerIndex, as: UInt16.self).map { Int($0) }
  }

  /// Adds received bytes.
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

  /// Whether more bytes are waiting than a handshake may have.
  var isOverLimit: Bool { consumed + bytes.readableBytes > NetworkLimits.handshakeBytes }

  /// Takes the bytes after the last message.
  mutating func takeRest() -> ByteBuffer {
    defer { bytes = ByteBuffer() }
    return bytes
  }
}

extension ChannelHandlerContext {
  /// Sends a handshake message after its length.
  @discardableResult
  func writeHandshakeMessage(_ message: [UInt8]) -> EventLoopFuture<Void> {
    var frame = channel.allocator.buffer(
      capacity: NetworkLimits.frameLengthBytes + message.count)
    frame.writeInteger(UInt16(message.count))
    frame.writeBytes(message)
    return writeAndFlush(NIOAny(frame))
  }

  /// Replaces a handler by another, which gets the bytes after the last message.
  func giveWay(
    from own: some RemovableChannelHandler & ChannelHandler, to handler: some ChannelHandler,
    rest: ByteBuffer
  ) throws {
    try channel.pipeline.syncOperations.addHandler(handler, position: .after(own))
    if rest.readableBytes > 0 { fireChannelRead(NIOAny(rest)) }
    channel.pipeline.syncOperations.removeHandler(own, promise: nil)
  }
}
