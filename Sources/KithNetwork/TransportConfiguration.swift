/// The addresses, times and limits of a ``Transport``.
package struct TransportConfiguration: Sendable {
  /// The hosts to listen on. `::` includes IPv4, and means `0.0.0.0` if the system has no IPv6. An
  /// empty list disables listening.
  package var hosts = ["::"]
  /// The port to listen on; 0: any.
  package var port: UInt16 = NetworkLimits.defaultPort

  /// The time allowed for a handshake, from accepting or connecting.
  package var handshakeTimeout: Duration = .seconds(5)
  /// The time allowed for a membership-only session.
  package var membershipTimeout: Duration = .seconds(5)
  /// The time allowed for making a connection.
  package var connectTimeout: Duration = .seconds(5)
  /// The time without data after which a session is closed.
  package var silenceTimeout: Duration = .seconds(90)
  /// The age, varied by up to an eighth, at which a session is closed, so that it is made again.
  package var sessionLifetime: Duration = .seconds(86_400)
  /// The time that a closed session waits for its last bytes to be taken.
  package var lingerTimeout: Duration = .seconds(2)
  /// The time that sent bytes may stay unacknowledged by the peer's kernel.
  package var userTimeout: Duration = .seconds(45)

  /// The maximum of the first wait before a target is dialled again; the minimum is two fifths
  /// of it.
  package var leastRedialDelay: Duration = .milliseconds(250)
  /// The longest wait before a static target is dialled again.
  package var mostRedialDelay: Duration = .seconds(30)
  /// The longest wait before a learned target is dialled again.
  package var mostLearnedRedialDelay: Duration = .seconds(300)
  /// The duration after which a session counts as a success, so that the next wait is short again.
  package var stableSession: Duration = .seconds(10)

  /// The number of unsent bytes above which a session is closed.
  package var queueLimit = NetworkLimits.queuedBytes
  /// The maximum number of half-open connections in all.
  package var halfOpenLimit = NetworkLimits.halfOpen
  /// The maximum number of half-open connections from one address.
  package var halfOpenPerAddressLimit = NetworkLimits.halfOpenPerAddress
  /// The maximum number of established sessions.
  package var sessionLimit = NetworkLimits.sessions
  /// The maximum number of membership-only sessions among them.
  package var membershipSessionLimit = NetworkLimits.membershipSessions

  /// Makes a configuration with the defaults.
  package init() {}
}
