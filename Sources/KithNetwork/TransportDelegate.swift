package import KithCore
package import KithCrypto

/// A pre-shared key with several owners: a noncopyable key cannot be in an array.
package final class SharedPresharedKey: Sendable {
  /// The key.
  package let key: PresharedKey

  /// Takes over the key.
  package init(_ key: consuming PresharedKey) {
    self.key = key
  }
}

/// The node's side of a ``Transport``, held strongly.
///
/// Called on event-loop threads; must not block. For each session, `sessionOpened` is first and
/// `sessionClosed` last, once each, all from one thread.
package protocol TransportDelegate: AnyObject, Sendable {
  /// Returns the epochs' pre-shared keys, the newest first. Those after the eighth are not tried.
  func presharedKeys() -> [SharedPresharedKey]
  /// Returns whether a static key belongs to a member.
  func isKnown(_ key: TransportPublicKey) -> Bool
  /// Returns this node's current hello; the transport fills in the version.
  func hello() -> Hello
  /// Called when a handshake is finished. ``Transport/isMembershipOnly(_:)`` returns whether the
  /// session is limited.
  func sessionOpened(_ id: SessionID, _ peer: SessionPeer)
  /// Called with each complete message.
  func sessionReceived(_ id: SessionID, _ message: [UInt8])
  /// Called when the session can take more, or cannot for now.
  func sessionWritable(_ id: SessionID, _ isWritable: Bool)
  /// Called as requested with ``Transport/awaitRoom(_:)``.
  func sessionHasRoom(_ id: SessionID)
  /// Called when the session has ended, for any reason.
  func sessionClosed(_ id: SessionID)
}
