internal import KithCore

/// An engine's interface to the network. Every call returns at once and may come from any thread.
protocol SessionLink: AnyObject, Sendable {
  /// Sends a message after those before it.
  func send(_ message: [UInt8], to session: SessionID)
  /// Has the engine told when little is left unsent of what was sent before.
  func awaitRoom(_ session: SessionID)
  /// Ends a session.
  func close(_ session: SessionID, _ reason: CloseReason)
  /// Ends all sessions; they may be dialled anew.
  func closeAll()
  /// Stops or resumes reading of a session.
  func pauseReading(_ session: SessionID, _ isPaused: Bool)
  /// Sets the addresses at which devices may be met.
  func setAddresses(_ addresses: [DeviceID: [String]])
  /// Sets the devices that are left behind, and are to be dialled.
  func setLeftBehind(_ devices: [DeviceID])
  /// Lets a session that was made for membership use the whole protocol.
  func promote(_ session: SessionID)
}
