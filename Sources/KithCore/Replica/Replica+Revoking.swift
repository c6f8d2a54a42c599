internal import KithCrypto

/// The fate of revoked devices' entries (`Docs/Protocol.md`, "Membership"). From the moment at
/// which a device is known to be revoked, its chains are withheld: not told, sent or compared. The
/// revoker publishes their entries again at once. After a while, other members publish those that
/// nobody has carried over. Both then drop the chains.
extension Replica {
  /// Withholds the chains of devices that are revoked now, drops those that hold nothing, and
  /// forgets the addresses and the coverage of the devices.
  mutating func forget(_ revoked: Set<DeviceID>) {
    var mutations: [Mutation] = []
    for device in revoked.sorted() {
      if contacts.forget(device) {
        mutations.append(.setAddresses(device, []))
        effects.append(.addresses([device: []]))
      }
    }
    coverage.forget(revoked)
    for id in links.keys { links[id]?.forget(revoked) }
    for identifier in stores.keys.sorted() {
      mutations += stores[identifier]?.withhold(revoked) ?? []
    }
    // The vector is without their chains now.
    for identifier in stores.keys { vectorChanged(in: identifier) }
    if !mutations.isEmpty { effects.append(.persist(mutations)) }
  }
}
