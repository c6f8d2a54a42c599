/// The times of a pairing.
public struct PairingConfiguration: Sendable {
  /// The hosts to listen on; see ``TransportConfiguration/hosts``.
  public var hosts = ["::"]
  /// The port to listen on; 0: any.
  public var port: UInt16 = 0
  /// The lifetime of an invitation.
  public var lifetime: Duration = .seconds(600)
  /// The time for a handshake.
  public var handshakeTimeout: Duration = .seconds(5)
  /// The time that a joiner with a code waits for its turn.
  public var turnTimeout: Duration = .seconds(20)
  /// The time for making a connection.
  public var connectTimeout: Duration = .seconds(5)
  /// The time that a closed exchange waits for its last bytes to be taken.
  public var lingerTimeout: Duration = .seconds(2)

  /// The defaults.
  public init() {}
}
