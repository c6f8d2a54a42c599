internal import KithCore
internal import NIOCore
internal import Synchronization

/// A session's handle for all threads. The event loop writes the queued messages with one flush.
final class SessionChannel: Sendable {
  enum Outcome {
    case queued
    /// The session is closing.
    case dropped
    /// Over the limit; the session ends.
    case overflow
  }

  private struct Queue {
    var messages: [[UInt8]] = []
    /// Not in the kernel yet.
    var unsentBytes = 0
    /// The event loop will take the queue, or is taking it.
    var isScheduled = false
    var isClosing = false
    var isDrainAwaited = false
    var isProbing = false

    /// True once, if a drain is awaited and few bytes are unsent.
    mutating func takeDrained() -> Bool {
      guard isDrainAwaited, unsentBytes <= NetworkLimits.lowWaterBytes else { return false }
      isDrainAwaited = false
      return true
    }
  }

  private let channel: any Channel
  private let handler: NIOLoopBound<SessionHandler>
  private let delegate: (any TransportDelegate)?
  private let linger: TimeAmount
  private let queueLimit: Int
  private let queue = Mutex(Queue())

  /// Called on the event loop.
  init(
    channel: any Channel, handler: SessionHandler, delegate: (any TransportDelegate)? = nil,
    linger: TimeAmount, queueLimit: Int = NetworkLimits.queuedBytes
  ) {
    self.channel = channel
    self.handler = NIOLoopBound(handler, eventLoop: channel.eventLoop)
    self.delegate = delegate
    self.linger = linger
    self.queueLimit = queueLimit
  }

  var channelID: ObjectIdentifier { ObjectIdentifier(channel) }

  @discardableResult
  func send(_ message: [UInt8]) -> Outcome { send([message]) }

  /// Queues all messages, or none.
  @discardableResult
  func send(_ messages: [[UInt8]]) -> Outcome {
    let bytes = messages.reduce(0) { $0 + MessageCodec.wireBytes(of: $1.count) }
    let (outcome, isFirst): (Outcome, Bool) = queue.withLock { queue in
      if queue.isClosing { return (.dropped, false) }
      guard queue.unsentBytes + bytes <= queueLimit else {
        queue.isClosing = true
        return (.overflow, false)
      }
      queue.unsentBytes += bytes
      queue.messages += messages
      defer { queue.isScheduled = true }
      return (.queued, !queue.isScheduled)
    }
    if isFirst { onLoop { $0.drain() } }
    if outcome == .overflow {
      delegate?.noted(.overflowed)
      abort()
    }
    return outcome
  }

  /// Calls the owner's `drained()` once, when few of the bytes queued before are unsent.
  func awaitDrain() {
    let isDrained = queue.withLock { queue in
      queue.isDrainAwaited = true
      return queue.takeDrained()
    }
    if isDrained { notifyDrained() }
  }

  /// Always asynchronous, so `send` never calls back into its caller.
  private func notifyDrained() {
    channel.eventLoop.execute { self.handler.value.notifyDrained() }
  }

  /// Ends the session after the queued messages.
  func close() {
    let isFirst = queue.withLock { queue in
      defer { queue.isClosing = true }
      return !queue.isClosing
    }
    guard isFirst else { return }
    onLoop { sessionChannel in
      sessionChannel.drain()
      sessionChannel.handler.value.close(within: sessionChannel.linger)
    }
  }

  func abort() {
    queue.withLock { queue in
      queue.isClosing = true
      queue.messages = []
    }
    onLoop { $0.handler.value.abort() }
  }

  func setReading(_ isReading: Bool) {
    onLoop { sessionChannel in
      guard !sessionChannel.queue.withLock({ $0.isClosing }) else { return }
      sessionChannel.handler.value.setReading(isReading)
    }
  }

  /// Ends the session within seconds if its peer is gone: the kernel probes it, without disturbing
  /// a live session.
  ///
  /// If `quiet` is given, it does so only if nothing was received for that time and nothing is unsent.
  func probe(ifQuietFor quiet: TimeAmount? = nil) {
    onLoop { sessionChannel in
      if let quiet, sessionChannel.handler.value.quietTime < quiet { return }
      let isWanted = sessionChannel.queue.withLock { queue in
        guard !queue.isProbing, quiet == nil || queue.unsentBytes == 0 else { return false }
        queue.isProbing = true
        return true
      }
      guard isWanted else { return }
      try? Bootstraps.setPatience(of: sessionChannel.channel, isProbing: true)
      let time = NetworkLimits.probeTime
      sessionChannel.channel.eventLoop.scheduleTask(in: time + time) {
        sessionChannel.queue.withLock { $0.isProbing = false }
        try? Bootstraps.setPatience(of: sessionChannel.channel, isProbing: false)
      }
    }
  }

  /// The kernel ends the connection if sent bytes stay unacknowledged so long.
  func setPatience(_ userTimeout: Duration) {
    onLoop { sessionChannel in
      try? Bootstraps.setPatience(
        of: sessionChannel.channel, isProbing: false, userTimeout: userTimeout)
    }
  }

  /// For received messages.
  func setMessageLimit(_ limit: Int) {
    onLoop { $0.handler.value.setMessageLimit(limit) }
  }

  func watchForSilence(_ timeout: TimeAmount) {
    onLoop { $0.handler.value.watchForSilence(timeout) }
  }

  /// Runs on the event loop, between two messages.
  func execute(_ body: @escaping @Sendable () -> Void) {
    channel.eventLoop.execute(body)
  }

  private func onLoop(_ body: @escaping @Sendable (SessionChannel) -> Void) {
    if channel.eventLoop.inEventLoop {
      body(self)
    } else {
      channel.eventLoop.execute { body(self) }
    }
  }

  private func drain() {
    while true {
      let messages = queue.withLock { queue in
        if queue.messages.isEmpty { queue.isScheduled = false }
        defer { queue.messages = [] }
        return queue.messages
      }
      guard !messages.isEmpty else { return }
      let bytes = messages.reduce(0) { $0 + MessageCodec.wireBytes(of: $1.count) }
      let written = channel.eventLoop.makePromise(of: Void.self)
      written.futureResult.whenComplete { _ in
        let isDrained = self.queue.withLock { queue in
          queue.unsentBytes -= bytes
          return queue.takeDrained()
        }
        if isDrained { self.notifyDrained() }
      }
      do {
        try handler.value.write(messages, written: written)
      } catch {
        // A message is over the limit, or the nonces are used up.
        delegate?.noted(.protocolViolated)
        abort()
      }
    }
  }
}

/// The sessions of a transport by id, with their limits and why this side closed them.
struct SessionRegistry {
  private struct Entry {
    var channel: SessionChannel?
    var isMembershipOnly: Bool
    var closeReason: CloseReason?
  }

  private let limit: Int
  private var entries: [SessionID: Entry] = [:]
  private var lastID: UInt64 = 0
  private var isClosed = false

  init(limit: Int) {
    self.limit = limit
  }

  /// Nil: too many sessions, or the transport is shutting down.
  mutating func admit(isMembershipOnly: Bool) -> SessionID? {
    guard !isClosed, entries.count < limit else { return nil }
    if isMembershipOnly {
      let count = entries.values.count(where: \.isMembershipOnly)
      guard count < NetworkLimits.membershipSessions else { return nil }
    }
    lastID += 1
    let id = SessionID(rawValue: lastID)
    entries[id] = Entry(isMembershipOnly: isMembershipOnly)
    return id
  }

  mutating func setChannel(_ channel: SessionChannel, of id: SessionID) {
    entries[id]?.channel = channel
  }

  func channel(of id: SessionID) -> SessionChannel? { entries[id]?.channel }

  /// The channels of the established sessions.
  var channels: [SessionChannel] { entries.values.compactMap(\.channel) }

  func isMembershipOnly(_ id: SessionID) -> Bool { entries[id]?.isMembershipOnly ?? false }

  /// False if the session is not membership-only.
  mutating func promote(_ id: SessionID) -> Bool {
    guard entries[id]?.isMembershipOnly == true else { return false }
    entries[id]?.isMembershipOnly = false
    return true
  }

  /// Keeps the first reason.
  mutating func setCloseReason(_ reason: CloseReason, of id: SessionID) {
    if entries[id]?.closeReason == nil { entries[id]?.closeReason = reason }
  }

  /// Returns why this side closed the session, if it did.
  mutating func remove(_ id: SessionID) -> CloseReason? {
    entries.removeValue(forKey: id)?.closeReason
  }

  /// Admits no more; returns the open ones.
  mutating func close() -> [SessionChannel] {
    isClosed = true
    return entries.sorted { $0.key < $1.key }.compactMap(\.value.channel)
  }
}
