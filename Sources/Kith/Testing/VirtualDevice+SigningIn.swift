package import KithCore

/// A program signs out and in: the same store objects show another device's stores.
extension VirtualDevice {
  /// Shows in stores this device's data instead of `other`'s, as `Accounts` does.
  ///
  /// - Parameters:
  ///   - stores: The stores, with their limits.
  ///   - other: The device that they showed so far.
  ///   - reason: The reason: `initialSyncChange` on signing in.
  ///   - superseded: The keys whose writes lost, by store.
  /// - Throws: ``KithError`` with a storage code.
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

  /// Adopts the writes made while nobody was signed in, and removes them there.
  ///
  /// - Parameter local: The storage of the local stores, whose device is closed.
  /// - Returns: The keys whose writes lost, by store.
  /// - Throws: ``KithError`` with a storage code.
  package func adopt(from local: MemoryStorage) throws(KithError) -> [StoreIdentifier: Set<Key>] {
    var superseded: [StoreIdentifier: Set<Key>] = [:]
    for (identifier, stored) in try Self.load(local).stores.sorted(by: { $0.key < $1.key }) {
      let drafts = stored.draftedWrites
      guard !drafts.isEmpty else { continue }
      let policy = engine.read { $0.usage(of: identifier)?.policy } ?? stored.policy
      _ = try engine.open(identifier, policy: policy)
      superseded[identifier] = try engine.adopt(identifier, drafts.map(\.write))
      do throws(StorageError) {
        try local.commit(drafts.map { .removeDraft(identifier, $0.ordinal) })
      } catch {
        throw KithError(error)
      }
      _ = try engine.adopt(identifier, [])
    }
    return superseded
  }

  private static func load(_ storage: MemoryStorage) throws(KithError) -> Snapshot {
    do throws(StorageError) {
      return try storage.load()
    } catch {
      throw KithError(error)
    }
  }
}
