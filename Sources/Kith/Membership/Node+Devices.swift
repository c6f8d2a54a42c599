package import KithCore
internal import KithCrypto

extension Node {
  /// All devices of the account, including revoked ones, by id.
  ///
  /// - Complexity: As of ``status``.
  package func devices() -> [NodeStatus.Device] { engine.read { $0.status() }.devices }

  /// See ``Accounts/dependents(of:)``.
  package func dependents(of device: DeviceID) -> [DeviceID] {
    engine.read { $0.roster.dependents(of: device) }
  }

  /// See ``Accounts/rename(_:to:)``.
  package func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    try await engine.changeMembership(.rename(device, name))
  }

  /// Accepts this device's time as right at this moment, so that a clock that was ahead heals
  /// although the host's clock is not synchronised (`Docs/Protocol.md`, "Clocks"). Durable on
  /// return. No effect if no clock was ahead.
  package func acceptTime() async throws(KithError) {
    try await engine.changeMembership(.acceptTime)
  }

  /// See ``Accounts/revoke(_:keeping:)``. This device carries over the removed device's writes.
  package func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    try await engine.changeMembership(.revoke(device, keeping: staying))
  }
}

extension Engine {
  func changeMembership(_ input: Input) async throws(KithError) {
    let refusal = perform(drainsHere: false) { state -> (KithError?, [Effect]) in
      switch state.take(input, at: clock()) {
      case .failure(let error): return (error, [])
      case .success(let effects):
        for case .refusedMembership(let error) in effects { return (KithError(error), effects) }
        return (nil, effects)
      }
    }
    if let refusal { throw refusal }
    // Flushing blocks for the disk, which Swift's shared threads must not.
    try await BlockingThread.run { () throws(KithError) in try self.flush() }
  }
}
