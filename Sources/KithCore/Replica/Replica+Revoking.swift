internal import KithCrypto

/// Once a device is known to be revoked, its chains are withheld: not announced, sent or compared
/// (`Docs/Protocol/duties.md`, "Carrying over"). The revoker carries over their entries at once;
/// other members later carry over the rest. Both then drop the chains.
extension Replica {
  /// Withholds newly revoked devices' chains, drops those that hold nothing, and forgets the
  /// devices' addresses and coverage.
  mutating func forget(_ revoked: Set<DeviceID>) {
    var mutations: [Mutation] = []
    for device in revoked.sorted() {
      if contacts.forget(device) {
        mutations.append(.addresses(device, []))
        effects.append(.addresses([device: []]))
      }
    }
    coverage.forget(revoked)
    for id in links.keys { links[id]?.forget(revoked) }
    for identifier in stores.keys.sorted() {
      mutations += stores[identifier]?.withhold(revoked) ?? []
    }
    // The vectors no longer contain their chains.
    for identifier in stores.keys { vectorChanged(in: identifier) }
    if !mutations.isEmpty { effects.append(.persist(mutations)) }
  }
}
