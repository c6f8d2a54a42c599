package import KithCore

/// The engine's interface to the network. Every call returns at once, on any thread.
package protocol SessionTransport: AnyObject, Sendable {
  /// Queues messages after earlier ones; they go out in one write to the socket if they fit.
  func send(_ messages: [[UInt8]], to session: SessionID)
  /// Has the transport call the engine when little is left unsent.
  func awaitDrain(_ session: SessionID)
  func close(_ session: SessionID, _ reason: CloseReason)
  /// Closes all sessions; peers may dial again.
  func closeAll()
  func pauseReading(_ session: SessionID, _ isPaused: Bool)
  func setAddresses(_ addresses: [DeviceID: [String]])
  /// Sets the devices to dial because they are left behind.
  func setLeftBehind(_ devices: [DeviceID])
  /// Lets a membership-only session use the whole protocol.
  func promote(_ session: SessionID)
}

/// The defaults are those of a transport that dials nobody.
extension SessionTransport {
  package func pauseReading(_ session: SessionID, _ isPaused: Bool) {}
  package func setAddresses(_ addresses: [DeviceID: [String]]) {}
  package func setLeftBehind(_ devices: [DeviceID]) {}
  package func promote(_ session: SessionID) {}
}

/// The transports of an engine's sessions.
struct SessionTransports {
  /// Set while the node runs.
  var node: (any SessionTransport)?
  let pairings = PairingSessions()

  func transport(to session: SessionID) -> (any SessionTransport)? {
    session.isPairing ? pairings : node
  }
}
