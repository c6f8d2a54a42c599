internal import KithCrypto

extension ChangeSetLog {
  /// Whether a device's chains are not told of, sent or compared any more, since it is revoked.
  func isWithheld(_ device: DeviceID) -> Bool { withheld.contains(device) }

  /// Whether anything of such a device is still kept.
  var holdsWithheld: Bool {
    !withheld.isEmpty && chains.keys.contains { withheld.contains($0.device) }
  }

  /// Forgets all that is kept of the devices whose chains are withheld. Returns what storage has to
  /// do.
  mutating func dropWithheld(in store: StoreIdentifier) -> [Mutation] {
    guard holdsWithheld else { return [] }
    let withheld = withheld
    return drop(chains: { withheld.contains($0.device) }, in: store)
  }
}
