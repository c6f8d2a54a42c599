public import KithCore
internal import KithCrypto
internal import NIOCore

extension Transport {
  // MARK: Sessions

  /// Sends a message, after all sent before on the session. Messages sent while the event loop is
  /// busy leave with one flush.
  ///
  /// A session whose unsent bytes exceed ``TransportConfiguration/queueLimit`` is closed, as is one that
  /// gets a message over ``NetworkLimits/messageBytes``. Nothing happens where it is over.
  /// - Complexity: O(*n*) on the session's event loop.
  public func send(_ id: SessionID, _ message: [UInt8]) {
    send(id, many: [message])
  }

  /// Sends messages in order with one flush; see ``send(_:_:)``.
  public func send(_ id: SessionID, many messages: [[UInt8]]) {
    registry.withLock { $0.link(of: id) }?.send(messages)
  }

  /// Has `sessionHasRoom` follow, once, when little is left unsent of what was sent before on the
  /// session; not before this returns. Nothing happens where the session is over.
  public func awaitRoom(_ id: SessionID) {
    registry.withLock { $0.link(of: id) }?.awaitRoom()
  }

  /// Ends a session after what was sent before. `sessionClosed` follows.
  public func close(_ id: SessionID, reason: CloseReason) {
    let link = registry.withLock { registry in
      registry.setCloseReason(reason, of: id)
      return registry.link(of: id)
    }
    link?.close()
  }

  /// Stops reading from a session's socket, so that its peer must wait. Messages that have been
  /// read already may still come.
  public func pauseReading(_ id: SessionID) {
    registry.withLock { $0.link(of: id) }?.setReading(false)
  }

  /// Reads on after ``pauseReading(_:)``.
  public func resumeReading(_ id: SessionID) {
    registry.withLock { $0.link(of: id) }?.setReading(true)
  }

  /// Whether a session carries membership only: its peer's static key was unknown, or it was made
  /// under an older epoch's pre-shared key, and nobody promoted it.
  public func isMembershipOnly(_ id: SessionID) -> Bool {
    registry.withLock { $0.isMembershipOnly(id) }
  }

  /// Lifts the limits of a membership-only session: the peer has proved to be a member.
  public func promote(_ id: SessionID) {
    let link = registry.withLock { $0.promote(id) ? $0.link(of: id) : nil }
    link?.setMessageLimit(NetworkLimits.messageBytes)
  }

  /// What was counted.
  public var statistics: TransportStatistics {
    var statistics = counters.snapshot
    statistics.halfOpen = gate.halfOpen
    return statistics
  }

  /// Makes the session of a finished handshake; nil: there are too many.
  func establish(
    _ exchange: NoiseExchange, hello: Hello, pskIndex: Int, address: String, dial: Dial?,
    channel: any Channel
  ) -> SessionHandler? {
    guard let key = exchange.remoteStaticKey else { return nil }
    let isFull = pskIndex == 0 && delegate.isKnown(key)
    let id = registry.withLock { $0.admit(isMembershipOnly: !isFull) }
    guard let id else {
      counters.update { $0.refused += 1 }
      return nil
    }
    guard let ciphers = try? exchange.split() else {
      _ = registry.withLock { $0.remove(id) }
      return nil
    }
    let codec = MessageCodec(
      ciphers: ciphers,
      messageLimit: isFull
        ? NetworkLimits.messageBytes : NetworkLimits.membershipMessageBytes)
    let peer = SessionPeer(
      transportKey: key, hello: hello, isDialled: dial != nil, address: address,
      isMembershipOnly: pskIndex != 0)
    return SessionHandler(
      codec: codec,
      sink: TransportSession(
        transport: self, id: id, peer: peer, dial: dial, channel: channel),
      silenceTimeout: TimeAmount(configuration.silenceTimeout))
  }

  /// The configured lifetime, give or take an eighth.
  func sessionLifetime() -> TimeAmount {
    let nanoseconds = Double(TimeAmount(configuration.sessionLifetime).nanoseconds)
    return .nanoseconds(Int64(nanoseconds * (0.875 + 0.25 * entropy.fraction())))
  }
}

extension DialSchedule.Delays {
  /// The delays of a configuration.
  init(_ configuration: TransportConfiguration) {
    func milliseconds(_ duration: Duration) -> UInt64 {
      UInt64(clamping: TimeAmount(duration).nanoseconds / 1_000_000)
    }
    self.init(
      least: max(1, milliseconds(configuration.leastRedialDelay)),
      most: milliseconds(configuration.mostRedialDelay),
      mostLearned: milliseconds(configuration.mostLearnedRedialDelay),
      stable: milliseconds(configuration.stableSession))
  }
}
