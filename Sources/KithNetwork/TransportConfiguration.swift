package struct TransportConfiguration: Sendable {
  /// `::` includes IPv4, and means `0.0.0.0` without IPv6. An empty list disables listening.
  package var hosts = ["::"]
  /// 0: any.
  package var port: UInt16 = NetworkLimits.defaultPort

  /// From accepting or connecting.
  package var handshakeTimeout: Duration = .seconds(5)
  /// Of a membership-only session.
  package var membershipTimeout: Duration = .seconds(5)
  /// A session without a message for this time is closed.
  package var silenceTimeout: Duration = .seconds(90)
  /// The age at which a session is closed and made again, varied by up to an eighth.
  package var sessionLifetime: Duration = .seconds(86_400)
  /// The time until the last bytes of a closed session are taken.
  package var lingerTimeout: Duration = .seconds(2)

  /// The maximum of the first wait; the minimum is two fifths of it.
  package var leastRedialMilliseconds: UInt64 = 250
  /// For a configured address.
  package var mostRedialMilliseconds: UInt64 = 30_000

  /// A session with more unsent bytes is closed.
  package var queueLimit = NetworkLimits.queuedBytes
  package var sessionLimit = NetworkLimits.sessions

  package init() {}
}
