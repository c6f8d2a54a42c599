public import KithCore
public import KithCrypto

/// A pre-shared key that several owners refer to: noncopyable keys cannot be in arrays.
public final class SharedPresharedKey: Sendable {
  /// The key.
  public let key: PresharedKey

  /// Takes the key over.
  public init(_ key: consuming PresharedKey) {
    self.key = key
  }
}

/// What a ``Transport`` asks of its node and tells it.
///
/// Called on event-loop threads; nothing here may block. Of one session, `sessionOpened` comes
/// first and `sessionClosed` last, once each, and all calls come from one thread. The transport
/// holds its delegate strongly.
public protocol TransportDelegate: AnyObject, Sendable {
  /// The epochs' pre-shared keys, the newest first. Those after the eighth are not tried.
  func presharedKeys() -> [SharedPresharedKey]
  /// Whether a static key is a member's.
  func isKnown(_ key: TransportPublicKey) -> Bool
  /// What this node says of itself now; the transport fills in the version.
  func hello() -> Hello
  /// A handshake is done. ``Transport/isMembershipOnly(_:)`` says whether the session is limited.
  func sessionOpened(_ id: SessionID, _ peer: SessionPeer)
  /// A whole message came.
  func sessionReceived(_ id: SessionID, _ message: [UInt8])
  /// The session can take more, or cannot for now.
  func sessionWritable(_ id: SessionID, _ isWritable: Bool)
  /// The answer to ``Transport/awaitRoom(_:)``.
  func sessionHasRoom(_ id: SessionID)
  /// The session is over, for whatever reason.
  func sessionClosed(_ id: SessionID)
}
