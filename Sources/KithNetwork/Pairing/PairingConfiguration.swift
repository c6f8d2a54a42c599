/// The times of a pairing.
package struct PairingConfiguration: Sendable {
  /// The hosts to listen on; see ``TransportConfiguration/hosts``.
  package var hosts = ["::"]
  /// The port to listen on; 0: any.
  package var port: UInt16 = 0
  /// The lifetime of an invitation.
  package var lifetime: Duration = .seconds(600)
  /// The time for a handshake.
  package var handshakeTimeout: Duration = .seconds(5)
  /// The time that a joiner with a code waits for its turn.
  package var turnTimeout: Duration = .seconds(20)
  /// The time for making a connection.
  package var connectTimeout: Duration = .seconds(5)
  /// The time that a closed exchange waits for its last bytes to be taken.
  package var lingerTimeout: Duration = .seconds(2)

  /// The defaults.
  package init() {}
}
