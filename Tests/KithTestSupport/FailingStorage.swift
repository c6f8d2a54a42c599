internal import Dispatch
package import KithCore
internal import Synchronization

/// Storage that fails on demand, and can be kept waiting.
package final class FailingStorage: ReplicaStorage {
  private struct State {
    var problem: StorageError?
    var commits = 0
    var holds = false
    var holdsSync = false
    var isHolding = false
    var nextProblem: StorageError?
    var outlineProblem: StorageError?
  }

  private let inner: any ReplicaStorage
  private let state = Mutex(State())
  private let gate = DispatchSemaphore(value: 0)

  package init(_ inner: any ReplicaStorage) { self.inner = inner }

  package var commits: Int { state.withLock { $0.commits } }

  package func fail(_ code: StorageError.Code?) {
    state.withLock { $0.problem = code.map(Self.error) }
  }

  /// Lets one commit fail, and takes those after it.
  package func failNextCommit(_ code: StorageError.Code) {
    state.withLock { $0.nextProblem = Self.error(code) }
  }

  private static func error(_ code: StorageError.Code) -> StorageError {
    StorageError(code: code, path: "/test", message: "on demand")
  }

  /// Keeps the next commit waiting until ``release()``.
  package func hold() { state.withLock { $0.holds = true } }

  /// Keeps the next commit waiting until ``release()`` once it is written.
  package func holdSync() { state.withLock { $0.holdsSync = true } }

  /// Whether a commit is kept waiting.
  package var isHolding: Bool { state.withLock { $0.isHolding } }

  /// Lets the commit that waits go on.
  package func release() { gate.signal() }

  package var isCopy: Bool { inner.isCopy }

  /// Lets loading fail.
  package func failLoading(_ code: StorageError.Code?) {
    state.withLock { $0.outlineProblem = code.map(Self.error) }
  }

  package func outline() throws(StorageError) -> StorageOutline {
    if let problem = state.withLock({ $0.outlineProblem }) { throw problem }
    return try inner.outline()
  }

  package func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] { try inner.rows(keys) }

  package func commit(_ mutations: [Mutation], written: @Sendable () -> Void) throws(StorageError) {
    let holds = state.withLock { state in
      state.commits += 1
      defer { state.holds = false }
      state.isHolding = state.holds
      return state.holds
    }
    if holds { gate.wait() }
    let problem = state.withLock { $0.nextProblem.take() ?? $0.problem }
    if let problem { throw problem }
    try inner.commit(mutations) {
      written()
      let holds = state.withLock { state in
        defer { state.holdsSync = false }
        if state.holdsSync { state.isHolding = true }
        return state.holdsSync
      }
      if holds { gate.wait() }
    }
  }
}
