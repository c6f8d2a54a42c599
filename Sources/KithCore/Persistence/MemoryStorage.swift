import Synchronization

/// Storage in memory, for tests and simulations. It keeps every promise of ``ReplicaStorage``
/// except surviving the process.
package final class MemoryStorage: ReplicaStorage {
  private struct State {
    var snapshot: Snapshot
    var isCopy: Bool
    var commits = 0
  }

  private let state: Mutex<State>

  /// With `isCopy`, it reports a copy until a new incarnation.
  package init(_ snapshot: Snapshot = Snapshot(), isCopy: Bool = false) {
    state = Mutex(State(snapshot: snapshot, isCopy: isCopy))
  }

  package var isCopy: Bool { state.withLock { $0.isCopy } }
  /// The number of commits so far.
  package var commits: Int { state.withLock { $0.commits } }

  package func outline() throws(StorageError) -> StorageOutline {
    StorageOutline(state.withLock { $0.snapshot })
  }

  package func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] {
    state.withLock { state in keys.map { state.snapshot[$0] } }
  }

  /// - Complexity: O(1).
  package func load() throws(StorageError) -> Snapshot {
    state.withLock { $0.snapshot }
  }

  /// - Complexity: O(*n*).
  package func commit(
    _ mutations: [Mutation], written: @Sendable () -> Void
  ) throws(StorageError) {
    written()
    state.withLock { state in
      state.commits += 1
      for mutation in mutations {
        state.snapshot.apply(mutation)
        if case .put(.incarnation, _) = mutation { state.isCopy = false }
      }
    }
  }
}
