package import KithCore
package import KithCrypto

/// A pre-shared key with several owners: a noncopyable key cannot be in an array.
package final class SharedPresharedKey: Sendable {
  package let key: PresharedKey

  package init(_ key: consuming PresharedKey) {
    self.key = key
  }
}

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
  func strangerRefused(_ host: String)
  /// Called when a call of an address has ended; see ``Transport/dialledAddresses``.
  func dialEnded()
  /// See ``Transport/isMembershipOnly(_:)``.
  func sessionOpened(_ id: SessionID, _ peer: SessionPeer)
  func sessionReceived(_ id: SessionID, _ message: [UInt8])
  /// More can be sent, or not for now.
  func sessionWritable(_ id: SessionID, _ isWritable: Bool)
  /// See ``Transport/awaitRoom(_:)``.
  func sessionHasRoom(_ id: SessionID)
  func sessionClosed(_ id: SessionID)
}
