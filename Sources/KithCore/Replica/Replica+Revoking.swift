internal import KithCrypto

/// What becomes of the entries of revoked devices (`Docs/Protocol.md`, "Membership"). From the
/// moment at which a
/// device is known to be revoked, its chains are withheld: not told of, not sent, not compared. The
/// revoker publishes their entries again at once, other members those that nobody has carried over
/// after a while; with that the chains are dropped.
extension Replica {
  /// Withholds the chains of devices that are revoked now, drops those that hold nothing, and forgets
  /// where the devices were met and what they cover.
  mutating func forget(_ revoked: Set<DeviceID>) {
    var mutations: [Mutation] = []
    for device in revoked.sorted() {
      knowledge[device] = nil
      heard[device] = nil
      if contacts.forget(device) {
        mutations.append(.setAddresses(device, []))
        effects.append(.addresses([device: []]))
      }
    }
    func others(_ vectors: [StoreIdentifier: [ChainID: UInt64]])
      -> [StoreIdentifier: [ChainID: UInt64]]
    { vectors.mapValues { $0.filter { !revoked.contains($0.key.device) } } }
    knowledge = knowledge.mapValues(others)
    for id in links.keys { links[id]?.forget(revoked) }
    for identifier in stores.keys.sorted() {
      mutations += stores[identifier]?.withhold(revoked) ?? []
    }
    forgetHearsay(of: revoked)
    if !mutations.isEmpty { effects.append(.persist(mutations)) }
  }
}
