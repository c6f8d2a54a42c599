internal import KithCrypto

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
