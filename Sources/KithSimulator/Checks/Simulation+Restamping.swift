internal import KithCore
internal import KithCrypto

/// A device whose clock is set back stamps drafts again, in the same order
/// (`Docs/Protocol/clocks.md`, "Healing").
extension Simulation {
  /// Clocks of the drafts, by key; empty unless the input may set the clock back.
  func draftClocks(
    of device: SimulatedDevice, before input: Input
  ) -> [StoreIdentifier: [Key: HybridTime]] {
    switch input {
    case .connected, .tick, .clockStatus, .acceptTime, .received, .carrier: break
    default: return [:]
    }
    return device.replica.map(draftClocks) ?? [:]
  }

  func draftClocks(of replica: Replica) -> [StoreIdentifier: [Key: HybridTime]] {
    var clocks: [StoreIdentifier: [Key: HybridTime]] = [:]
    for store in replica.storeIdentifiers {
      let some = replica.draftClocks(of: store)
      if !some.isEmpty { clocks[store] = some }
    }
    return clocks
  }

  func checkRestamping(
    of device: SimulatedDevice, from before: [StoreIdentifier: [Key: HybridTime]]
  ) throws(Violation) {
    guard let replica = device.replica else { return }
    for (store, old) in before.sorted(by: { $0.key < $1.key }) {
      let new = replica.draftClocks(of: store)
      let pairs = old.compactMap { key, clock in
        new[key].map { (old: clock, new: $0) }
      }.sorted { $0.old < $1.old }
      guard pairs.contains(where: { $0.old != $0.new }) else { continue }
      tally.count("times that drafts were stamped again")
      guard zip(pairs, pairs.dropFirst()).allSatisfy({ $0.new < $1.new || $0.old == $1.old }) else {
        throw Violation(.causality, "\(device.name) stamped drafts again in another order")
      }
      history.restamp(on: device.number, author: device.keys.id, in: store, pairs)
    }
  }
}
