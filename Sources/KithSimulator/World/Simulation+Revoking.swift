internal import KithCore
internal import KithCrypto

extension Simulation {
  /// A person revokes a device, and keeps those that it enrolled.
  func revoke(_ device: SimulatedDevice, by revoker: SimulatedDevice) throws(Violation) {
    guard let roster = revoker.replica?.roster, device.keys.id != revoker.keys.id,
      roster.isMember(revoker.keys.id), roster.isMember(device.keys.id), hasEnough(without: device)
    else { return }
    tally.count("devices revoked")
    revoked.insert(device.keys.id)
    let staying = Set(roster.dependents(of: device.keys.id))
    try hand(.revoke(device.keys.id, keeping: staying), to: revoker)
  }

  private func hasEnough(without device: SimulatedDevice) -> Bool {
    devices.contains {
      !$0.isGone && $0.original == nil && $0.keys.id != device.keys.id
        && !revoked.contains($0.keys.id)
    }
  }

  /// The person removes devices known to be revoked, and liars whose lies of their own chains cost
  /// them all incarnations: data that only they have is lost.
  func retireRevoked() {
    for device in devices where !device.isGone {
      let isRevoked = devices.contains { other in
        !other.isGone && other.replica?.roster.isRevoked(device.keys.id) == true
      }
      let isSpent = device.isTraitor && device.replica?.hasNoIncarnations == true
      guard isRevoked || isSpent || mustJoinAgain(device) else { continue }
      tally.count("revoked devices put away")
      giveUp(device)
    }
  }
}
