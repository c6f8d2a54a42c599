package import KithCore

extension VirtualDevice {
  /// Shows this device's data in `stores` instead of `other`'s, as `Accounts` does.
  ///
  /// On signing in, `reason` is `initialSyncChange`, and `superseded` has the keys whose writes
  /// lost.
  package func show(
    _ stores: [(store: KeyValueStore, policy: Policy)], insteadOf other: VirtualDevice,
    reason: ChangeReason = .accountChange, superseded: [StoreIdentifier: Set<Key>] = [:]
  ) throws(KithError) {
    for (store, policy) in stores {
      other.engine.release(store.view)
      try engine.open(
        store.view, policy: policy, reason: reason,
        superseded: superseded[store.identifier] ?? [])
      store.replaceService(by: engine)
    }
  }

  /// Adopts the writes of the local stores, whose device is closed, and removes them there. Returns
  /// the keys whose writes lost.
  package func adopt(from local: MemoryStorage) throws(KithError) -> [StoreIdentifier: Set<Key>] {
    var superseded: [StoreIdentifier: Set<Key>] = [:]
    let snapshot = try KithError.mapping { () throws(StorageError) in try local.load() }
    for (identifier, stored) in snapshot.stores.sorted(by: { $0.key < $1.key }) {
      let drafts = stored.draftedWrites
      guard !drafts.isEmpty else { continue }
      superseded[identifier] = try engine.adopt(identifier, stored.policy, drafts.map(\.write))
      try KithError.mapping { () throws(StorageError) in
        try local.commit(drafts.map { .removeDraft(identifier, $0.ordinal) })
      }
      _ = try engine.adopt(identifier, [])
    }
    return superseded
  }
}
