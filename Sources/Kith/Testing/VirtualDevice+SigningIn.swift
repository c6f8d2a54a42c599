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
    try KithError.mapping(local.load()).handOver(from: local) { engine }
  }
}
