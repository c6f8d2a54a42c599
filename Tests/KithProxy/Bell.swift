internal import Synchronization

/// Wakes the tasks that wait for a change.
///
/// A task first reads ``version``, then checks the state, then waits for a ring after that version.
/// So it misses no ring in between.
final class Bell: Sendable {
  private struct State {
    var version: UInt64 = 0
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
  }

  private let state = Mutex(State())

  /// The number of rings.
  var version: UInt64 { state.withLock { $0.version } }

  /// Wakes all waiting tasks.
  func ring() {
    let waiters = state.withLock { state in
      state.version += 1
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Returns once the bell has rung after `version`, or the task is cancelled.
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

  /// Returns once the bell has rung after `version`, at a moment, or when the task is cancelled.
  func wait(after version: UInt64, until moment: ContinuousClock.Instant) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.wait(after: version) }
      group.addTask { try? await Task.sleep(until: moment, clock: .continuous) }
      await group.next()
      group.cancelAll()
    }
  }
}
