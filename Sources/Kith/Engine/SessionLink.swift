package import KithCore

/// The engine's interface to the network. Every call returns at once, on any thread.
package protocol SessionLink: AnyObject, Sendable {
  /// Queued after earlier messages.
  func send(_ message: [UInt8], to session: SessionID)
  /// Calls the engine when little is left unsent.
  func awaitRoom(_ session: SessionID)
  func close(_ session: SessionID, _ reason: CloseReason)
  /// Peers may dial again.
  func closeAll()
  func pauseReading(_ session: SessionID, _ isPaused: Bool)
  func setAddresses(_ addresses: [DeviceID: [String]])
  /// Sets the devices to dial because they are left behind.
  func setLeftBehind(_ devices: [DeviceID])
  /// Lets a membership-only session use the whole protocol.
  func promote(_ session: SessionID)
}

/// For a link that dials nobody.
extension SessionLink {
  package func pauseReading(_ session: SessionID, _ isPaused: Bool) {}
  package func setAddresses(_ addresses: [DeviceID: [String]]) {}
  package func setLeftBehind(_ devices: [DeviceID]) {}
  package func promote(_ session: SessionID) {}
}
