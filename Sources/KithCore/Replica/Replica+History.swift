extension Replica {
  /// The values that a key, or any, showed before on this device, newest first.
  ///
  /// - Complexity: O(*n*) in the values kept.
  package func history(
    of identifier: StoreIdentifier, key: Key?, limit: Int
  ) -> [PastValue] {
    stores[identifier]?.history?.newest(limit, of: key, at: now.wallMilliseconds) ?? []
  }

  /// The past values that an undo of a store writes.
  ///
  /// - Complexity: O(*n*) in the values kept.
  package func pastValues(for undo: Undo, of identifier: StoreIdentifier) -> [PastValue] {
    stores[identifier]?.history?.values(for: undo, at: now.wallMilliseconds) ?? []
  }

  mutating func keepHistory(_ keeps: Bool) {
    guard keeps != keepsHistory else { return }
    keepsHistory = keeps
    var mutations: [Mutation] = [.put(.keepsHistory, [keeps ? 1 : 0])]
    for identifier in stores.keys.sorted() {
      mutations += stores[identifier]?.history?.removeAll(in: identifier) ?? []
      stores[identifier]?.history = keeps ? PastValues() : nil
    }
    effects.append(.persist(mutations))
  }

  /// For stores that do not change.
  mutating func dropExpiredHistory() {
    let time = now.wallMilliseconds
    let expired = stores.filter { $0.value.history?.hasExpired(at: time) == true }.keys.sorted()
    if !expired.isEmpty { carryOut(StoreOutcome(), in: expired) }
  }
}
