package import KithCore
internal import KithCrypto

extension Node {
  /// The devices of the account, also those that were revoked, by id.
  ///
  /// - Complexity: As of ``status``.
  package func devices() -> [NodeStatus.Device] { engine.read { $0.status() }.devices }

  /// The devices that are members only through another: they are revoked with it, unless
  /// ``revoke(_:keeping:)`` is told to keep them. Ascending.
  package func dependents(of device: DeviceID) -> [DeviceID] {
    engine.read { $0.roster.dependents(of: device) }
  }

  /// Calls a device something else, on all devices of the account. Durable when it returns; told to
  /// the others as they are met.
  ///
  /// - Parameters:
  ///   - device: This device or another of the account's.
  ///   - name: 1 to 64 bytes of UTF-8, without control or unseen characters. A name that only looks
  ///     like another member's is refused.
  /// - Throws: ``KithError`` with `invalidName`, `invalidDevice`, `revoked`, `closed` or a storage
  ///   code.
  package func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    try await engine.changeMembership(.rename(device, name))
  }

  /// Says, for this moment, that the time that this device uses is right: a clock that had been ahead
  /// heals, although no kernel calls the time synchronised (`Docs/Protocol.md`, "Clocks"). Durable when
  /// it returns; it changes nothing if no clock had been ahead.
  ///
  /// - Throws: ``KithError`` with `closed` or a storage code.
  package func acceptTime() async throws(KithError) {
    try await engine.changeMembership(.acceptTime)
  }

  /// Throws a device out of the account, for ever: nothing that it signed counts any more, and it
  /// cannot read later writes. Its own writes live on under this device's name. Durable when it
  /// returns; the others learn of it as they are met.
  ///
  /// - Parameters:
  ///   - device: The device, which is not this one.
  ///   - staying: Of ``dependents(of:)`` those that stay; the others are revoked as well. This device
  ///     always stays.
  /// - Throws: ``KithError`` with `invalidDevice`, `revoked`, `closed` or a storage code.
  package func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    try await engine.changeMembership(.revoke(device, keeping: staying))
  }
}

extension Engine {
  /// Hands in a change of membership, and returns once it is durable.
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
    // It blocks for as long as the disk takes, which Swift's shared threads must not.
    try await BlockingThread.run { () throws(KithError) in try self.flush() }
  }
}
