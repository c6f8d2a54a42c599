internal import KithCrypto

extension Transport {
  /// A device was heard at a host where it was not before: sessions with it that were made with another
  /// host are with nobody any more if it has moved. They are not ended for it, since a device may well
  /// have several addresses; they end where its kernel does not answer there.
  func probeSessions(with key: TransportPublicKey, butAt host: String) {
    for id in dialler.sessions(with: key, butAt: host) {
      registry.withLock { $0.link(of: id) }?.probe(usual: configuration.userTimeout)
    }
  }

  /// This host's addresses are others: sessions from one that is gone hang.
  func probeSessions() {
    for link in registry.withLock({ $0.links }) { link.probe(usual: configuration.userTimeout) }
  }

  /// A person looks which devices are in touch. Sessions that brought nothing of late and have nothing
  /// unsent are probed, so they end within seconds if the peer is gone. Otherwise a device that vanished
  /// is shown for up to 75 s: 30 s until something is sent, and 45 s until the kernel gives up.
  public func probeQuietSessions() {
    for link in registry.withLock({ $0.links }) {
      link.probe(usual: configuration.userTimeout, ifQuietFor: NetworkLimits.quietTime)
    }
  }
}
