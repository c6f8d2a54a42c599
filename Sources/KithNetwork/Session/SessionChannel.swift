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

  private struct Outbox {
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
  private let outbox = Mutex(Outbox())

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
    let (outcome, isFirst): (Outcome, Bool) = outbox.withLock { outbox in
      if outbox.isClosing { return (.dropped, false) }
      guard outbox.unsentBytes + bytes <= queueLimit else {
        outbox.isClosing = true
        return (.overflow, false)
      }
      outbox.unsentBytes += bytes
      outbox.messages += messages
      defer { outbox.isScheduled = true }
      return (.queued, !outbox.isScheduled)
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
    let isDrained = outbox.withLock { outbox in
      outbox.isDrainAwaited = true
      return outbox.takeDrained()
    }
    if isDrained { notifyDrained() }
  }

  /// Always asynchronous, so `send` never calls back into its caller.
  private func notifyDrained() {
    channel.eventLoop.execute { self.handler.value.notifyDrained() }
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

  func abort() {
    outbox.withLock { outbox in
      outbox.isClosing = true
      outbox.messages = []
    }
    onLoop { $0.handler.value.abort() }
  }

  func setReading(_ isReading: Bool) {
    onLoop { link in
      guard !link.outbox.withLock({ $0.isClosing }) else { return }
      link.handler.value.setReading(isReading)
    }
  }

  /// Ends the session within seconds if its peer is gone: the kernel probes it, without disturbing
  /// a live session.
  ///
  /// If `quiet` is given, it does so only if nothing was received for that time and nothing is unsent.
  func probe(ifQuietFor quiet: TimeAmount? = nil) {
    onLoop { link in
      if let quiet, link.handler.value.quietTime < quiet { return }
      let isWanted = link.outbox.withLock { outbox in
        guard !outbox.isProbing, quiet == nil || outbox.unsentBytes == 0 else { return false }
        outbox.isProbing = true
        return true
      }
      guard isWanted else { return }
      try? Bootstraps.setPatience(of: link.channel, isProbing: true)
      let time = NetworkLimits.probeTime
      link.channel.eventLoop.scheduleTask(in: time + time) {
        link.outbox.withLock { $0.isProbing = false }
        try? Bootstraps.setPatience(of: link.channel, isProbing: false)
      }
    }
  }

  /// The kernel ends the connection if sent bytes stay unacknowledged so long.
  func setPatience(_ userTimeout: Duration) {
    onLoop { link in
      try? Bootstraps.setPatience(of: link.channel, isProbing: false, userTimeout: userTimeout)
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
      let messages = outbox.withLock { outbox in
        if outbox.messages.isEmpty { outbox.isScheduled = false }
        defer { outbox.messages = [] }
        return outbox.messages
      }
      guard !messages.isEmpty else { return }
      let bytes = messages.reduce(0) { $0 + MessageCodec.wireBytes(of: $1.count) }
      let written = channel.eventLoop.makePromise(of: Void.self)
      written.futureResult.whenComplete { _ in
        let isDrained = self.outbox.withLock { outbox in
          outbox.unsentBytes -= bytes
          return outbox.takeDrained()
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

struct SessionRegistry {
  private struct Entry {
    var link: SessionChannel?
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

  mutating func setLink(_ link: SessionChannel, of id: SessionID) {
    entries[id]?.link = link
  }

  func link(of id: SessionID) -> SessionChannel? { entries[id]?.link }

  /// The channels of the established sessions.
  var links: [SessionChannel] { entries.values.compactMap(\.link) }

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
    return entries.sorted { $0.key < $1.key }.compactMap(\.value.link)
  }
}
