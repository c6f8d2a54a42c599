internal import KithCrypto

extension ChangeSetLog {
  /// Whether a device's chains are withheld, because it is revoked.
  func isWithheld(_ device: DeviceID) -> Bool { withheld.contains(device) }

  /// Whether any data of such a device is kept.
  var holdsWithheld: Bool {
    !withheld.isEmpty && chains.keys.contains { withheld.contains($0.device) }
  }

  /// Forgets all data of devices whose chains are withheld. Returns the mutations.
  mutating func dropWithheld(in store: StoreIdentifier) -> [Mutation] {
    guard holdsWithheld else { return [] }
    let withheld = withheld
    return drop(chains: { withheld.contains($0.device) }, in: store)
  }
}
