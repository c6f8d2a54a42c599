package struct PairingConfiguration: Sendable {
  /// See ``TransportConfiguration/hosts``.
  package var hosts = ["::"]
  /// 0: any.
  package var port: UInt16 = 0
  package var lifetime: Duration = .seconds(600)
  package var handshakeTimeout: Duration = .seconds(5)
  /// For a joiner with a code.
  package var turnTimeout: Duration = .seconds(20)
  /// Until the last bytes of a closed exchange are taken.
  package var lingerTimeout: Duration = .seconds(2)

  package init() {}
}
