internal import KithCrypto

extension Transport {
  /// Probes the sessions with a device that was heard at a new host. If it has moved, its sessions
  /// with the old host are dead; it may also have several addresses, so they end only if its kernel
  /// does not answer there.
  func probeSessions(with key: TransportPublicKey, butAt host: String) {
    for id in dialler.sessions(with: key, butAt: host) {
      registry.withLock { $0.link(of: id) }?.probe(usual: configuration.userTimeout)
    }
  }

  /// Probes all sessions, because this host's addresses changed: sessions from an old address hang.
  func probeSessions() {
    for link in registry.withLock({ $0.links }) { link.probe(usual: configuration.userTimeout) }
  }

  /// Probes quiet sessions, because a person looks at the connected devices. If a session received
  /// nothing recently and has nothing unsent, it ends within seconds if the peer is gone; otherwise
  /// after up to 75 s (30 s until something is sent, 45 s until the kernel gives up).
  package func probeQuietSessions() {
    for link in registry.withLock({ $0.links }) {
      link.probe(usual: configuration.userTimeout, ifQuietFor: NetworkLimits.quietTime)
    }
  }
}
