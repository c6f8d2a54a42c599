extension Replica {
  /// Takes in what was written while nobody was signed in (`Docs/Protocol.md`, "First sync"). A
  /// transaction one of whose keys the account has already loses whole, as does one that does not
  /// fit; the others become drafts. If the account has other devices, any write of theirs wins over
  /// the drafts, whenever it is met.
  ///
  /// What became of the writes, and which was the last, goes in one commit. So a crash before the local
  /// stores are emptied adopts and refuses nothing twice.
  mutating func adopt(
    _ id: WriteID, _ identifier: StoreIdentifier, _ writes: [LocalWrite]
  ) {
    guard !isRevoked else {
      effects.append(.refused(id, .revoked))
      return
    }
    guard var store = stores.removeValue(forKey: identifier) else {
      effects.append(.refused(id, .unknownStore(identifier)))
      return
    }
    let isLone = !roster.sortedMembers.contains { $0.device != keys.id }
    let shown = store.state.shown
    let last = writes.isEmpty ? .zero : max(store.adopted, writes.map(\.clock).max() ?? .zero)
    var recheck = StoreReplica.Recheck()
    var adopted = Set<Key>()
    for write in writes where write.clock > store.adopted || Canary.adoptTwice.isPlanted {
      let operations = store.effective(write.operations)
      guard !operations.isEmpty else { continue }
      let isReal = isLone || Canary.stampAdoptedNow.isPlanted
      let clock = isReal ? tick() : write.clock.adopted
      if let reason = store.adopt(operations, clock: clock, author: keys.id, over: adopted) {
        let draft = Draft(ordinal: 0, clock: clock, operations: operations)
        store.refuse(draft, because: reason, noting: &recheck)
        recheck.superseded.formUnion(draft.keys)
        continue
      }
      adopted.formUnion(operations.map { Key($0.key) })
    }
    var mutations = store.makeDraftsDurable() + recheck.mutations
    if last != store.adopted { mutations.append(.setAdopted(identifier, last)) }
    store.adopted = last
    if !mutations.isEmpty { effects.append(.persist(mutations + [.setClock(clock.latest)])) }
    store.waiting.append(id)
    let changes = store.state.changes(since: shown)
    stores[identifier] = store
    if !changes.isEmpty || !recheck.superseded.isEmpty {
      effects.append(
        .view(
          ViewChange(
            store: identifier, reason: .initialSyncChange, changes: changes,
            superseded: recheck.superseded.sorted())))
    }
    if !recheck.refusals.isEmpty { effects.append(.refusals(identifier, recheck.refusals)) }
    effects.append(.accepted(id))
  }

  /// Stores whose adopted writes may still be in the local stores.
  public var adoptingStores: [StoreIdentifier] {
    stores.filter { $0.value.adopted > .zero }.keys.sorted()
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
