import KithCore
import Synchronization

/// Storage in memory that fails on demand.
final class FailingStorage: ReplicaStorage {
  private struct State {
    var problem: StorageError?
    var commits = 0
  }

  private let inner: any ReplicaStorage
  private let state = Mutex(State())

  init(_ inner: any ReplicaStorage) { self.inner = inner }

  var commits: Int { state.withLock { $0.commits } }

  func fail(_ code: StorageError.Code?) {
    state.withLock {
      $0.problem = code.map { StorageError(code: $0, path: "/test", message: "on demand") }
    }
  }

  func load() throws(StorageError) -> Snapshot { try inner.load() }

  func commit(_ mutations: [Mutation]) throws(StorageError) {
    let problem = state.withLock { state in
      state.commits += 1
      return state.problem
    }
    if let problem { throw problem }
    try inner.commit(mutations)
  }
}
