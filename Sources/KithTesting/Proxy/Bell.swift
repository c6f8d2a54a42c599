internal import Synchronization

/// Wakes the tasks that wait for something to change.
///
/// Who waits takes the ``version`` first, looks at what may have changed, and then waits after that
/// version: nothing that rings in between is missed.
final class Bell: Sendable {
  private struct State {
    var version: UInt64 = 0
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Mutex(State())

  /// Counts the rings.
  var version: UInt64 { state.withLock { $0.version } }

  /// Wakes all who wait.
  func ring() {
    let waiters = state.withLock { state in
      state.version += 1
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Returns once it rang after `version`, or the task is cancelled.
  func wait(after version: UInt64) async {
    let id = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isDue = state.withLock { state in
          if state.version != version || Task.isCancelled { return true }
          state.waiters[id] = continuation
          return false
        }
        if isDue { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume()
    }
  }

  /// The same, or once a moment has come.
  func wait(after version: UInt64, until moment: ContinuousClock.Instant) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.wait(after: version) }
      group.addTask { try? await Task.sleep(until: moment, clock: .continuous) }
      await group.next()
      group.cancelAll()
    }
  }
}
