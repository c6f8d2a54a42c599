/// How long a pairing puts up with what.
public struct PairingConfiguration: Sendable {
  /// The hosts to listen on; see ``TransportConfiguration/hosts``.
  public var hosts = ["::"]
  /// The port to listen on; 0: any.
  public var port: UInt16 = 0
  /// How long an invitation lasts.
  public var lifetime: Duration = .seconds(600)
  /// How long a handshake may take.
  public var handshakeTimeout: Duration = .seconds(5)
  /// How long a joiner with a code waits until other exchanges are over.
  public var turnTimeout: Duration = .seconds(20)
  /// How long making a connection may take.
  public var connectTimeout: Duration = .seconds(5)
  /// How long a closed exchange waits until its last bytes are taken.
  public var lingerTimeout: Duration = .seconds(2)

  /// The defaults.
  public init() {}
}
