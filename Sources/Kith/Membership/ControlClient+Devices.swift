internal import KithCore

extension ControlClient {
  /// The devices that are members only through another, ascending.
  package func dependents(of device: DeviceID) async throws(KithError) -> [DeviceID] {
    try await ask(.dependents) { $0.device = device.hex }.devices ?? []
  }

  /// Says that the time that the device uses is right; see `Node.acceptTime`.
  package func acceptTime() async throws(KithError) { _ = try await ask(.acceptTime) { _ in } }

  /// Calls a device something else; see `Node.rename`.
  package func rename(_ device: DeviceID, to name: String) async throws(KithError) {
    _ = try await ask(.rename) {
      $0.device = device.hex
      $0.name = name
    }
  }

  /// Throws a device out of the account; see `Node.revoke`.
  package func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>
  ) async throws(KithError) {
    _ = try await ask(.revoke) {
      $0.device = device.hex
      $0.keeping = staying.sorted().map(\.hex)
    }
  }
}
