internal import KithCore
internal import NIOCore

/// Connects an established channel with the transport's delegate. Belongs to the channel's event
/// loop.
final class TransportSession: SessionSink {
  private let transport: Transport
  private let id: SessionID
  private let peer: SessionPeer
  private let dial: Dial?
  private var isOpen = false
  /// Whether the delegate was told of it.
  private var isTold = false
  private var limitedBytes = 0
  private var timers: [Scheduled<Void>] = []

  init(transport: Transport, id: SessionID, peer: SessionPeer, dial: Dial?) {
    self.transport = transport
    self.id = id
    self.peer = peer
    self.dial = dial
  }

  func opened(_ handler: SessionHandler, on channel: any Channel) {
    let sessionChannel = SessionChannel(
      channel: channel, handler: handler, delegate: transport.delegate,
      linger: TimeAmount(transport.configuration.lingerTimeout),
      queueLimit: transport.configuration.queueLimit)
    isOpen = true
    let (transport, id, peer, dial) = (transport, id, peer, dial)
    let isLimited = transport.registry.withLock { registry in
      registry.setChannel(sessionChannel, of: id)
      return registry.isMembershipOnly(id)
    }
    if isLimited {
      let timeout = TimeAmount(transport.configuration.membershipTimeout)
      timers.append(
        channel.eventLoop.scheduleTask(in: timeout) {
          if transport.isMembershipOnly(id) { transport.close(id, reason: .membershipOnly) }
        })
    }
    timers.append(
      channel.eventLoop.scheduleTask(in: transport.sessionLifetime()) {
        transport.close(id, reason: .aged)
      })
    transport.dialler.opened(id, key: peer.transportKey, address: peer.address, by: dial)
    // The dialler closes a surplus session, which may end before that call returns.
    guard isOpen else { return }
    isTold = true
    transport.delegate.sessionOpened(id, peer)
  }

  func received(_ message: [UInt8]) {
    transport.delegate.sessionReceived(id, message)
  }

  func receivedBytes(_ count: Int) {
    guard limitedBytes <= NetworkLimits.membershipSessionBytes, transport.isMembershipOnly(id)
    else { return }
    limitedBytes += count
    if limitedBytes > NetworkLimits.membershipSessionBytes {
      transport.delegate.noted(.protocolViolated)
      transport.close(id, reason: .protocolViolation)
    }
  }

  func writable(_ isWritable: Bool) {
    transport.delegate.sessionWritable(id, isWritable)
  }

  func drained() {
    transport.delegate.sessionDrained(id)
  }

  func failed(_ error: FrameError) {
    transport.delegate.noted(error == .notAuthentic ? .notAuthentic : .protocolViolated)
    transport.registry.withLock { $0.setCloseReason(.protocolViolation, of: id) }
  }

  func fellSilent() {
    transport.delegate.noted(.fellSilent)
    transport.registry.withLock { $0.setCloseReason(.silent, of: id) }
  }

  func closed() {
    for timer in timers { timer.cancel() }
    timers = []
    let reason = transport.registry.withLock { $0.remove(id) }
    guard isOpen else { return }
    isOpen = false
    if isTold { transport.delegate.sessionClosed(id) }
    transport.dialler.closed(id, reason: reason)
  }
}
