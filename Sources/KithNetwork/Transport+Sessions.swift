package import KithCore
internal import KithCrypto
internal import NIOCore

extension Transport {
  // MARK: Sessions

  /// Sends a message after all earlier ones, or drops it if the session has ended.
  ///
  /// Messages gather for one flush while the event loop is busy. The session is closed if its
  /// unsent bytes exceed ``TransportConfiguration/queueLimit``, or a message
  /// ``NetworkLimits/messageBytes``.
  /// - Complexity: O(*n*) on the session's event loop.
  package func send(_ id: SessionID, _ message: [UInt8]) {
    registry.withLock { $0.link(of: id) }?.send(message)
  }

  /// Requests one call of `sessionHasRoom` when few of the bytes sent before are unsent. It comes
  /// after this returns, unless the session has ended.
  package func awaitRoom(_ id: SessionID) {
    registry.withLock { $0.link(of: id) }?.awaitRoom()
  }

  /// Ends a session after the messages sent before; `sessionClosed` follows.
  package func close(_ id: SessionID, reason: CloseReason) {
    let link = registry.withLock { registry in
      registry.setCloseReason(reason, of: id)
      return registry.link(of: id)
    }
    link?.close()
  }

  /// Makes the peer wait, or goes on. Messages already read may still come.
  package func setReading(_ id: SessionID, _ isReading: Bool) {
    registry.withLock { $0.link(of: id) }?.setReading(isReading)
  }

  /// True if the peer's static key was unknown or its epoch older, and it was not promoted.
  package func isMembershipOnly(_ id: SessionID) -> Bool {
    registry.withLock { $0.isMembershipOnly(id) }
  }

  /// Lifts the limits, because the peer has proved to be a member.
  package func promote(_ id: SessionID) {
    let link = registry.withLock { $0.promote(id) ? $0.link(of: id) : nil }
    link?.setMessageLimit(NetworkLimits.messageBytes)
  }

  /// Nil: too many sessions.
  func establish(
    _ exchange: NoiseExchange, hello: Hello, pskIndex: Int, address: String, dial: Dial?
  ) -> SessionHandler? {
    guard let key = exchange.remoteStaticKey else { return nil }
    let isFull = pskIndex == 0 && delegate.isKnown(key)
    let id = registry.withLock { $0.admit(isMembershipOnly: !isFull) }
    guard let id else {
      delegate.noted(.refused)
      return nil
    }
    guard let ciphers = try? exchange.split() else {
      _ = registry.withLock { $0.remove(id) }
      return nil
    }
    let codec = MessageCodec(
      ciphers: ciphers,
      messageLimit: isFull
        ? NetworkLimits.messageBytes : NetworkLimits.membershipMessageBytes,
      // A member whose proof is being judged may have sent more behind it.
      holdsLong: !isFull)
    let peer = SessionPeer(
      transportKey: key, hello: hello, isDialled: dial != nil, address: address,
      isMembershipOnly: pskIndex != 0)
    return SessionHandler(
      codec: codec,
      sink: TransportSession(transport: self, id: id, peer: peer, dial: dial),
      silenceTimeout: TimeAmount(configuration.silenceTimeout))
  }

  /// Varied by up to an eighth.
  func sessionLifetime() -> TimeAmount {
    let nanoseconds = Double(TimeAmount(configuration.sessionLifetime).nanoseconds)
    return .nanoseconds(Int64(nanoseconds * (0.875 + 0.25 * entropy.fraction())))
  }
}

extension Transport {
  /// Called when a device was heard at a new host. If it has moved, its old sessions are dead and
  /// end. If it has several addresses, its kernel answers and they stay.
  func probeSessions(with key: TransportPublicKey, butAt host: String) {
    for id in dialler.sessions(with: key, butAt: host) {
      registry.withLock { $0.link(of: id) }?.probe()
    }
  }

  /// Called when this host's addresses changed: sessions from an old address hang.
  func probeSessions() {
    for link in registry.withLock({ $0.links }) { link.probe() }
  }

  /// Called because a person looks at the connected devices.
  ///
  /// If the peer is gone, a session that received nothing recently and has nothing unsent ends
  /// within seconds; others within 75 s (30 s until something is sent, 45 s until the kernel gives
  /// up).
  package func probeQuietSessions() {
    for link in registry.withLock({ $0.links }) {
      link.probe(ifQuietFor: NetworkLimits.quietTime)
    }
  }
}
