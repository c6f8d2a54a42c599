internal import NIOCore
internal import Synchronization

/// A session's handle for all threads: a queue of messages in order. The event loop takes the whole
/// queue and writes it with one flush.
final class SessionLink: Sendable {
  /// The result of sending messages.
  enum Outcome {
    /// The messages are queued.
    case queued
    /// The session is closing; the messages are dropped.
    case dropped
    /// The queue exceeds its limit; the session is being closed.
    case overflow
  }

  private struct Outbox {
    var messages: [[UInt8]] = []
    /// The number of bytes that were queued and are not in the kernel yet.
    var unsentBytes = 0
    /// Whether the event loop is about to take the queue, or is taking it.
    var isScheduled = false
    var isClosing = false
    var isRoomAwaited = false
    var isProbing = false

    /// Returns true once if the owner waits for room and few bytes are left unsent.
    mutating func takeRoom() -> Bool {
      guard isRoomAwaited, unsentBytes <= NetworkLimits.lowWaterBytes else { return false }
      isRoomAwaited = false
      return true
    }
  }

  private let channel: any Channel
  private let handler: NIOLoopBound<SessionHandler>
  private let counters: TransportCounters?
  private let linger: TimeAmount
  private let queueLimit: Int
  private let outbox = Mutex(Outbox())

  /// Makes a handle, on the channel's event loop.
  init(
    channel: any Channel, handler: SessionHandler, counters: TransportCounters?,
    linger: TimeAmount, queueLimit: Int = NetworkLimits.queuedBytes
  ) {
    self.channel = channel
    self.handler = NIOLoopBound(handler, eventLoop: channel.eventLoop)
    self.counters = counters
    self.linger = linger
    self.queueLimit = queueLimit
  }

  /// Identifies the session's channel.
  var channelID: ObjectIdentifier { ObjectIdentifier(channel) }

  @discardableResult
  func send(_ messages: [[UInt8]]) -> Outcome {
    enum Step { case schedule, wait, drop, overflow }
    let bytes = messages.reduce(0) { $0 + MessageCodec.wireBytes(of: $1.count) }
    let step: Step = outbox.withLock { outbox in
      if outbox.isClosing { return .drop }
      guard outbox.unsentBytes + bytes <= queueLimit else {
        outbox.isClosing = true
        outbox.messages = []
        return .overflow
      }
      outbox.unsentBytes += bytes
      outbox.messages += messages
      if outbox.isScheduled { return .wait }
      outbox.isScheduled = true
      return .schedule
    }
    switch step {
    case .drop: return .dropped
    case .wait: return .queued
    case .schedule:
      onLoop { $0.drain() }
      return .queued
    case .overflow:
      counters?.update { $0.overflows += 1 }
      abort()
      return .overflow
    }
  }

  /// Tells the session's owner once when few of the bytes queued before are left unsent.
  func awaitRoom() {
    let hasRoom = outbox.withLock { outbox in
      outbox.isRoomAwaited = true
      return outbox.takeRoom()
    }
    if hasRoom { tellRoom() }
  }

  /// Always asynchronous, so `send` never calls back into its caller.
  private func tellRoom() {
    channel.eventLoop.execute { self.handler.value.tellRoom() }
  }

  /// Ends the session after the queued messages.
  func close() {
    let isFirst = outbox.withLock { outbox in
      defer { outbox.isClosing = true }
      return !outbox.isClosing
    }
    guard isFirst else { return }
    onLoop { link in
      link.drain()
      link.handler.value.close(within: link.linger)
    }
  }

  /// Ends the session at once.
  func abort() {
    outbox.withLock { outbox in
      outbox.isClosing = true
      outbox.messages = []
    }
    onLoop { $0.handler.value.abort() }
  }

  /// Starts or stops reading from the socket.
  func setReading(_ isReading: Bool) {
    onLoop { link in
      guard !link.outbox.withLock({ $0.isClosing }) else { return }
      link.handler.value.setReading(isReading)
    }
  }

  /// Ends the session within seconds if its peer is gone: the kernel probes it, once at a time,
  /// without disturbing a live session. With `quiet`, only if nothing was received for that time
  /// and nothing is unsent.
  func probe(usual userTimeout: Duration, ifQuietFor quiet: TimeAmount? = nil) {
    onLoop { link in
      if let quiet, link.handler.value.quietTime < quiet { return }
      let isWanted = link.outbox.withLock { outbox in
        guard !outbox.isProbing, quiet == nil || outbox.unsentBytes == 0 else { return false }
        outbox.isProbing = true
        return true
      }
      guard isWanted else { return }
      try? Bootstraps.setPatience(of: link.channel, isProbing: true, userTimeout: userTimeout)
      let time = NetworkLimits.probeTime
      link.channel.eventLoop.scheduleTask(in: time + time) {
        link.outbox.withLock { $0.isProbing = false }
        try? Bootstraps.setPatience(of: link.channel, isProbing: false, userTimeout: userTimeout)
      }
    }
  }

  /// Sets how long sent bytes may stay unacknowledged before the kernel ends the connection.
  func setPatience(_ userTimeout: Duration) {
    onLoop { link in
      try? Bootstraps.setPatience(of: link.channel, isProbing: false, userTimeout: userTimeout)
    }
  }

  /// Sets the maximum length of a received message.
  func setMessageLimit(_ limit: Int) {
    onLoop { $0.handler.value.messageLimit = limit }
  }

  /// Closes the session if nothing comes for so long.
  func watchForSilence(_ timeout: TimeAmount) {
    onLoop { $0.handler.value.watchForSilence(timeout) }
  }

  /// Runs on the session's event loop, between two messages.
  func execute(_ body: @escaping @Sendable () -> Void) {
    channel.eventLoop.execute(body)
  }

  private func onLoop(_ body: @escaping @Sendable (SessionLink) -> Void) {
    if channel.eventLoop.inEventLoop {
      body(self)
    } else {
      channel.eventLoop.execute { body(self) }
    }
  }

  private func drain() {
    while true {
      let messages = outbox.withLock { outbox in
        if outbox.messages.isEmpty { outbox.isScheduled = false }
        defer { outbox.messages = [] }
        return outbox.messages
      }
      guard !messages.isEmpty else { return }
      let bytes = messages.reduce(0) { $0 + MessageCodec.wireBytes(of: $1.count) }
      let written = channel.eventLoop.makePromise(of: Void.self)
      written.futureResult.whenComplete { _ in
        let hasRoom = self.outbox.withLock { outbox in
          outbox.unsentBytes -= bytes
          return outbox.takeRoom()
        }
        if hasRoom { self.tellRoom() }
      }
      do {
        let count = try handler.value.write(messages, written: written)
        counters?.update { $0.bytesSent += UInt64(count) }
      } catch {
        // A message over the limit is the caller's mistake. Used-up nonces are nobody's mistake.
        counters?.update { $0.protocolViolations += 1 }
        abort()
      }
    }
  }
}
