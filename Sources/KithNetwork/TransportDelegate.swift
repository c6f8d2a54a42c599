package import KithCore
package import KithCrypto

/// The node's side of a ``Transport``, held strongly.
///
/// Called on event-loop threads; must not block. For each session, `sessionOpened` is first and
/// `sessionClosed` last, once each, all from one thread.
package protocol TransportDelegate: AnyObject, Sendable {
  /// The newest first; only eight are tried.
  func presharedKeys() -> [SharedPresharedKey]
  /// Whether the key is a member's.
  func isKnown(_ key: TransportPublicKey) -> Bool
  /// The transport fills in the version.
  func hello() -> Hello
  /// Called if a connection's first message is under none of the keys, with its host.
  func unauthenticatedRefused(_ host: String)
  /// Called when a call of an address has ended; see ``Transport/dialledAddresses``.
  func dialEnded()
  /// Called on any thread, possibly often; for counting.
  func noted(_ event: TransportEvent)
  /// See ``Transport/isMembershipOnly(_:)``.
  func sessionOpened(_ id: SessionID, _ peer: SessionPeer)
  func sessionReceived(_ id: SessionID, _ message: [UInt8])
  /// More can be sent, or not for now.
  func sessionWritable(_ id: SessionID, _ isWritable: Bool)
  /// See ``Transport/awaitDrain(_:)``.
  func sessionDrained(_ id: SessionID)
  func sessionClosed(_ id: SessionID)
}

/// An event of a connection.
package enum TransportEvent: Sendable {
  case accepted
  /// A limit is reached.
  case refused
  /// Closed for a newer one before its handshake finished.
  case evicted
  /// On either side.
  case handshakeFailed
  /// Its first message was answered before.
  case replayed
  /// A message was not encrypted by the peer.
  case notAuthentic
  /// A malformed frame, or a message over a limit.
  case protocolViolated
  /// Too many bytes were unsent.
  case overflowed
  /// No message came for too long.
  case fellSilent
}
