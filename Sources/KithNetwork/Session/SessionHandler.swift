internal import NIOCore

/// Called on the channel's event loop.
protocol SessionSink: AnyObject {
  /// Messages can be sent.
  func opened(_ handler: SessionHandler, on channel: any Channel)
  func received(_ message: [UInt8])
  /// Counts all received bytes, of complete messages or not.
  func receivedBytes(_ count: Int)
  /// More can be sent, or not for now.
  func writable(_ isWritable: Bool)
  /// Few bytes are unsent, as requested.
  func drained()
  /// Received bytes end the session.
  func failed(_ error: FrameError)
  /// Nothing came for too long.
  func fellSilent()
  /// Called once, last.
  func closed()
}

/// Converts the bytes of an established session to messages and back.
///
/// Not `Sendable`: belongs to its channel's event loop. Others use ``SessionChannel``.
final class SessionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let codec: MessageCodec
  private let sink: any SessionSink
  private var silenceTimeout: TimeAmount?
  private var buffer = ByteBuffer()
  private var context: ChannelHandlerContext?
  /// The time of the last message, or of the last start of reading.
  private var lastRead = NIODeadline.distantPast
  private var silenceCheck: Scheduled<Void>?
  private var lingerDeadline: Scheduled<Void>?
  /// No more messages are accepted.
  private var isClosing = false
  private var isPaused = false
  /// Received messages wait for the event loop's other work.
  private var isPostponed = false

  init(codec: MessageCodec, sink: any SessionSink, silenceTimeout: TimeAmount?) {
    self.codec = codec
    self.sink = sink
    self.silenceTimeout = silenceTimeout
  }

  var quietTime: TimeAmount { (context?.eventLoop.now ?? lastRead) - lastRead }

  /// `rest` came after the handshake's last message.
  func install(
    insteadOf handler: some RemovableChannelHandler & ChannelHandler,
    context: ChannelHandlerContext, rest: ByteBuffer
  ) {
    let channel = context.channel
    do {
      try channel.pipeline.syncOperations.addHandler(self, position: .after(handler))
    } catch {
      sink.closed()
      return channel.close(promise: nil)
    }
    channel.pipeline.syncOperations.removeHandler(handler, promise: nil)
    try? channel.syncOptions?.setOption(
      .recvAllocator,
      value: AdaptiveRecvByteBufferAllocator(
        minimum: 1024, initial: 4096, maximum: NetworkLimits.readBytes))
    try? channel.syncOptions?.setOption(.maxMessagesPerRead, value: 4)
    lastRead = channel.eventLoop.now
    watchForSilence(channel.eventLoop)
    sink.opened(self, on: channel)
    if rest.readableBytes > 0 { receive(rest) }
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    receive(unwrapInboundIn(data))
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if !isClosing { sink.writable(context.channel.isWritable) }
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    if isPostponed, !isPaused {
      // A peer may send and then close: its messages are read in one more time slice.
      isPostponed = false
      handOn()
    }
    silenceCheck?.cancel()
    lingerDeadline?.cancel()
    isClosing = true
    sink.closed()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  private func receive(_ incoming: ByteBuffer) {
    guard !isClosing else { return }
    var incoming = incoming
    let count = incoming.readableBytes
    sink.receivedBytes(count)
    buffer.writeBuffer(&incoming)
    if !isPostponed { handOn() }
  }

  /// Passes on messages until reading pauses or the time slice ends: the event loop also serves
  /// other sessions and the host's programs.
  private func handOn() {
    let end = NIODeadline.now() + NetworkLimits.readSlice
    let wasHeld = codec.isHeld
    do throws(FrameError) {
      while !isClosing, !isPaused, let message = try codec.open(from: &buffer) {
        lastRead = context?.eventLoop.now ?? lastRead
        sink.received(message)
        if !isPaused, buffer.readableBytes > 0, NIODeadline.now() >= end { postpone() }
        if isPostponed { break }
      }
    } catch {
      isClosing = true
      sink.failed(error)
      context?.close(promise: nil)
    }
    if codec.isHeld != wasHeld { updateReading() }
    if isClosing || buffer.readableBytes == 0 && buffer.capacity > NetworkLimits.keptBufferBytes {
      buffer = ByteBuffer()
    } else if buffer.readableBytes == 0 {
      buffer.clear()
    } else {
      buffer.discardReadBytes()
    }
  }

  private func postpone() {
    guard let context, !isPostponed else { return }
    isPostponed = true
    updateReading()
    context.eventLoop.assumeIsolated().execute {
      guard self.isPostponed else { return }
      self.isPostponed = false
      self.updateReading()
      if !self.isPaused { self.handOn() }
    }
  }

  private func updateReading() {
    try? context?.channel.syncOptions?.setOption(
      .autoRead, value: !isPaused && !isPostponed && (isClosing || !codec.isHeld))
  }

  /// For received messages. One that waited for it is handed on.
  func setMessageLimit(_ limit: Int) {
    codec.messageLimit = limit
    // Asynchronous, because the caller may hold a lock.
    if codec.isHeld { postpone() }
  }

  /// `written` gets the result.
  func write(_ messages: [[UInt8]], written: EventLoopPromise<Void>) throws(FrameError) {
    guard let context else { return written.fail(ChannelError.ioOnClosedChannel) }
    var joined = context.channel.allocator.buffer(
      capacity: min(
        messages.reduce(0) { $0 + MessageCodec.wireBytes(of: $1.count) },
        NetworkLimits.joinedBytes))
    for message in messages {
      let next = MessageCodec.wireBytes(of: message.count)
      if joined.readableBytes > 0, joined.readableBytes + next > NetworkLimits.joinedBytes {
        context.write(wrapOutboundOut(joined), promise: nil)
        joined = context.channel.allocator.buffer(capacity: next)
      }
      do {
        try codec.seal(message, into: &joined)
      } catch {
        written.fail(error)
        throw error
      }
    }
    context.writeAndFlush(wrapOutboundOut(joined), promise: written)
  }

  func notifyDrained() {
    if !isClosing { sink.drained() }
  }

  /// Waits until the peer's kernel has all bytes and the peer has closed. Closing with unread bytes
  /// would reset the connection and lose sent messages.
  func close(within linger: TimeAmount) {
    guard let context, lingerDeadline == nil else { return }
    isClosing = true
    setReading(true)
    let channel = context.channel
    lingerDeadline = channel.eventLoop.scheduleTask(in: linger) { channel.close(promise: nil) }
    let flushed = channel.eventLoop.makePromise(of: Void.self)
    flushed.futureResult.whenComplete { _ in channel.close(mode: .output, promise: nil) }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: flushed)
  }

  func abort() {
    isClosing = true
    context?.close(promise: nil)
  }

  func setReading(_ isReading: Bool) {
    isPaused = !isReading
    if isReading {
      lastRead = context?.eventLoop.now ?? lastRead
      // Asynchronous, because the caller may hold a lock.
      if buffer.readableBytes > 0 { postpone() }
    }
    updateReading()
  }

  /// Does nothing if the session is watched already.
  func watchForSilence(_ timeout: TimeAmount) {
    guard let context, silenceTimeout == nil else { return }
    silenceTimeout = timeout
    lastRead = context.eventLoop.now
    watchForSilence(context.eventLoop)
  }

  private func watchForSilence(_ eventLoop: any EventLoop) {
    guard let silenceTimeout else { return }
    silenceCheck = eventLoop.assumeIsolated().scheduleTask(
      deadline: (isPaused ? eventLoop.now : lastRead) + silenceTimeout
    ) {
      guard !self.isClosing else { return }
      if !self.isPaused, self.lastRead + silenceTimeout <= eventLoop.now {
        self.isClosing = true
        self.sink.fellSilent()
        self.context?.close(promise: nil)
      } else {
        self.watchForSilence(eventLoop)
      }
    }
  }
}
