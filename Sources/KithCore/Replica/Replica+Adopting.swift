extension Replica {
  /// Takes in what was written while nobody was signed in (`Docs/Protocol.md`, "First sync"). A
  /// transaction one of whose keys the account has already loses whole, as does one that does not
  /// fit; the others become drafts. Their stamps are provisional where the account has other
  /// devices: any write of theirs wins, whenever it is met.
  mutating func adopt(
    _ id: WriteID, _ identifier: StoreIdentifier, _ transactions: [[Operation]]
  ) {
    guard !isRevoked else {
      effects.append(.refused(id, .revoked))
      return
    }
    guard var store = stores.removeValue(forKey: identifier) else {
      effects.append(.refused(id, .unknownStore(identifier)))
      return
    }
    let isLone = !store.isProvisional && !roster.sortedMembers.contains { $0.device != keys.id }
    let shown = store.state.shown
    var recheck = StoreReplica.Recheck()
    var adopted = Set<Key>()
    for transaction in transactions {
      let operations = store.effective(transaction)
      guard !operations.isEmpty else { continue }
      let clock = isLone ? tick() : store.provisionalClock(for: [])
      if let reason = store.adopt(operations, clock: clock, author: keys.id, over: adopted) {
        let draft = Draft(ordinal: 0, clock: clock, operations: operations)
        store.refuse(draft, because: reason, noting: &recheck)
        recheck.superseded.formUnion(draft.keys)
        continue
      }
      timeKeeper.clock.witness(clock)
      adopted.formUnion(operations.map { Key($0.key) })
    }
    store.waiting.append(id)
    let changes = store.state.changes(since: shown)
    stores[identifier] = store
    if !changes.isEmpty || !recheck.superseded.isEmpty {
      effects.append(
        .view(
          ViewChange(
            store: identifier, reason: .accountChange, changes: changes,
            superseded: recheck.superseded.sorted())))
    }
    tell(recheck, in: identifier)
    effects.append(.accepted(id))
  }
}

extension StoreReplica {
  /// Makes a draft of a transaction that was written while nobody was signed in; why not, where it
  /// does not stand. Of the keys that such transactions `adopted` before, the later write wins.
  fileprivate mutating func adopt(
    _ operations: [Operation], clock: HybridTime, author: DeviceID, over adopted: Set<Key>
  ) -> Refusal.Reason? {
    let isKnown = operations.contains { operation in
      let key = Key(operation.key)
      return state.slot(key) != nil && !adopted.contains(key)
    }
    if isKnown { return .initialSync }
    let fits = operations.allSatisfy { operation in
      operation.key.utf8.count <= policy.keyBytes
        && operation.value?.size ?? 0 <= policy.valueBytes
    }
    guard fits, lackOfRoom(for: operations) == nil,
      accept(operations, clock: clock, author: author) != nil
    else { return .quota }
    return nil
  }
}
