/// How a ``Transport`` listens and dials, and what it puts up with.
public struct TransportConfiguration: Sendable {
  /// The hosts to listen on. `::` takes IPv4 too, and stands for `0.0.0.0` where the system has no
  /// IPv6. Empty: does not listen.
  public var hosts = ["::"]
  /// The port to listen on; 0: any.
  public var port: UInt16 = NetworkLimits.defaultPort

  /// How long a handshake may take, from accepting or connecting.
  public var handshakeTimeout: Duration = .seconds(5)
  /// How long a membership-only session may last.
  public var membershipTimeout: Duration = .seconds(5)
  /// How long making a connection may take.
  public var connectTimeout: Duration = .seconds(5)
  /// A session that brought nothing for this long is closed.
  public var silenceTimeout: Duration = .seconds(90)
  /// A session as old as this, more or less an eighth, is closed, so that it is made anew.
  public var sessionLifetime: Duration = .seconds(86_400)
  /// How long a closed session waits until its last bytes are taken.
  public var lingerTimeout: Duration = .seconds(2)
  /// How long sent bytes may stay unacknowledged by the peer's kernel.
  public var userTimeout: Duration = .seconds(45)

  /// The first wait before a target is dialled again, at most; at least two fifths of it.
  public var leastRedialDelay: Duration = .milliseconds(250)
  /// The longest wait before a static target is dialled again.
  public var mostRedialDelay: Duration = .seconds(30)
  /// The longest wait before a learned target is dialled again.
  public var mostLearnedRedialDelay: Duration = .seconds(300)
  /// A session that lasted this long was a success: waiting starts small again.
  public var stableSession: Duration = .seconds(10)

  /// A session that has more unsent bytes than this is closed.
  public var queueLimit = NetworkLimits.queuedBytes
  /// The most half-open connections in all.
  public var halfOpenLimit = NetworkLimits.halfOpen
  /// The most half-open connections from one address.
  public var halfOpenPerAddressLimit = NetworkLimits.halfOpenPerAddress
  /// The most established sessions.
  public var sessionLimit = NetworkLimits.sessions
  /// The most membership-only sessions among them.
  public var membershipSessionLimit = NetworkLimits.membershipSessions

  /// The defaults.
  public init() {}
}
