import NIOCore
import NIOEmbedded
import Testing

@testable import KithNetwork

/// A session's handler and its channel in virtual time; the kernel takes bytes when the test says so.
struct SessionHandlerTests {
  private final class Sink: SessionSink {
    var isSilent = false
    var drains = 0
    func opened(_ handler: SessionHandler, on channel: any Channel) {}
    func received(_ message: [UInt8]) {}
    func receivedBytes(_ count: Int) {}
    func writable(_ isWritable: Bool) {}
    func drained() { drains += 1 }
    func failed(_ error: FrameError) {}
    func fellSilent() { isSilent = true }
    func closed() {}
  }

  /// Keeps what is written.
  private final class Kernel: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    private var held: [EventLoopPromise<Void>] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      if let promise { held.append(promise) }
    }

    func take() {
      let held = held
      self.held = []
      for promise in held { promise.succeed() }
    }
  }

  /// Is there before the session's handler, as a handshake's is.
  private final class Before: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    let handler: SessionHandler

    init(_ handler: SessionHandler) { self.handler = handler }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
      handler.install(insteadOf: self, context: context, rest: ByteBuffer())
    }
  }

  private let channel = EmbeddedChannel()
  private let sink = Sink()
  private let kernel = Kernel()
  private let handler: SessionHandler
  private let peer: MessageCodec

  init() throws {
    let (codec, peer) = try MessageCodecTests.pair()
    self.peer = peer
    handler = SessionHandler(codec: codec, sink: sink, silenceTimeout: .seconds(10))
    try channel.pipeline.syncOperations.addHandlers([kernel, Before(handler)])
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
    channel.pipeline.fireUserInboundEventTriggered(())
    channel.embeddedEventLoop.run()
  }

  private func pass(_ time: TimeAmount) { channel.embeddedEventLoop.advanceTime(by: time) }

  @Test func silenceIsCountedFromTheLastWholeMessage() throws {
    pass(.seconds(9))
    var frame = ByteBuffer()
    try peer.seal([1, 2, 3], into: &frame)
    try channel.writeInbound(frame)
    pass(.seconds(9))
    // A part of a message is none.
    frame.clear()
    try peer.seal([4], into: &frame)
    try channel.writeInbound(frame.readSlice(length: 20))
    pass(.milliseconds(999))
    #expect(!sink.isSilent && channel.isActive)
    pass(.milliseconds(1))
    #expect(sink.isSilent && !channel.isActive)
  }

  /// A peer that is not read cannot be heard: no time counts while reading is paused, nor what passed before.
  @Test func silenceIsNotCountedWhileReadingIsPaused() {
    pass(.seconds(8))
    handler.setReading(false)
    for _ in 0..<10 { pass(.seconds(7)) }
    #expect(!sink.isSilent && channel.isActive)
    handler.setReading(true)
    pass(.milliseconds(9_999))
    #expect(!sink.isSilent && channel.isActive)
    pass(.milliseconds(1))
    #expect(sink.isSilent && !channel.isActive)
  }

  /// Bytes are unsent until the kernel has them: only then there is room for others.
  @Test func bytesAreUnsentUntilTheKernelHasThem() {
    let sessionChannel = SessionChannel(
      channel: channel, handler: handler, linger: .seconds(1),
      queueLimit: 1 << 20)
    let message = [UInt8](repeating: 1, count: 600_000)
    #expect(sessionChannel.send(message) == .queued)
    sessionChannel.awaitDrain()
    channel.embeddedEventLoop.run()
    #expect(sink.drains == 0)
    kernel.take()
    channel.embeddedEventLoop.run()
    #expect(sink.drains == 1)
    #expect(sessionChannel.send(message) == .queued)
    channel.embeddedEventLoop.run()
    #expect(sessionChannel.send(message) == .overflow)
  }
}
