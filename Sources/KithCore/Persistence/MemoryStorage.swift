import Synchronization

/// A replica's memory in memory, for tests and the simulator. It keeps every promise of
/// ``ReplicaStorage`` but surviving the process, and can be told to fail.
package final class MemoryStorage: ReplicaStorage {
  private struct State {
    var snapshot: Snapshot
    var isCopy: Bool
    var failure: StorageError?
    var commitCount = 0
  }

  private let state: Mutex<State>

  /// Makes a storage with a snapshot. With `isCopy` it reports a copy until a new incarnation.
  package init(_ snapshot: Snapshot = Snapshot(), isCopy: Bool = false) {
    state = Mutex(State(snapshot: snapshot, isCopy: isCopy))
  }

  /// Whether it was made as a copy, and has no new incarnation yet.
  package var isCopy: Bool { state.withLock { $0.isCopy } }

  /// The number of successful commits.
  package var commitCount: Int { state.withLock { $0.commitCount } }

  /// Makes the next commit fail with this error; nil: not.
  package func failNextCommit(with error: StorageError?) {
    state.withLock { $0.failure = error }
  }

  /// All that was committed, change sets by name only.
  package func outline() throws(StorageError) -> StorageOutline {
    StorageOutline(state.withLock { $0.snapshot })
  }

  /// Change sets as they were committed.
  package func changeSets(
    _ references: [ChangeSetReference], in store: StoreIdentifier
  ) throws(StorageError) -> [StoredChangeSet?] {
    state.withLock { state in
      let kept = state.snapshot.stores[store]?.changeSets
      return references.map { kept?[$0] }
    }
  }

  /// All that was committed.
  ///
  /// - Complexity: O(1).
  package func load() throws(StorageError) -> Snapshot {
    state.withLock { $0.snapshot }
  }

  /// Applies mutations in order, all or none.
  ///
  /// - Complexity: O(*n*).
  package func commit(_ mutations: [Mutation]) throws(StorageError) {
    let failure = state.withLock { state -> StorageError? in
      if let failure = state.failure {
        state.failure = nil
        return failure
      }
      for mutation in mutations {
        state.snapshot.apply(mutation)
        if case .setIncarnation = mutation { state.isCopy = false }
      }
      state.commitCount += 1
      return nil
    }
    if let failure { throw failure }
  }
}
