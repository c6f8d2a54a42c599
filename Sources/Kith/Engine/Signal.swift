internal import Synchronization

/// Wakes tasks that wait for a change; each looks for itself what changed.
///
/// It resumes no task while it holds its lock. A task's cancellation handler runs under the task's
/// own lock, which resuming needs too: a lock held over one and taken in the other is a deadlock.
package final class Signal: Sendable {
  private struct State {
    var version: UInt64 = 0
    var lastWaiter: UInt64 = 0
    var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    var isFinished = false
  }

  private let state = Mutex(State())

  package init() {}

  /// The number of changes. Read it before looking, then wait for changes after it.
  var version: UInt64 { state.withLock { $0.version } }

  var isFinished: Bool { state.withLock { $0.isFinished } }

  package func raise() { wake { $0.version += 1 } }

  /// Wakes all tasks; later waits return at once.
  func finish() {
    wake {
      $0.version += 1
      $0.isFinished = true
    }
  }

  /// Returns after a change since `version`, or at once when finished or cancelled.
  func wait(after version: UInt64) async {
    let number = state.withLock { state in
      state.lastWaiter += 1
      return state.lastWaiter
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isReady = state.withLock { state in
          if state.version > version || state.isFinished || Task.isCancelled { return true }
          state.waiters[number] = continuation
          return false
        }
        if isReady { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
    }
  }

  private func wake(_ change: (inout State) -> Void) {
    let waiters = state.withLock { state in
      change(&state)
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    for waiter in waiters { waiter.resume() }
  }
}

extension Signal {
  /// Checks the condition at each change. Returns false if the time passed, the task was cancelled
  /// or the signal finished first.
  func wait(timeout: Duration, until condition: @escaping @Sendable () -> Bool) async -> Bool {
    if condition() { return true }
    return await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        while !Task.isCancelled {
          let version = self.version
          if condition() { return true }
          if self.isFinished { return false }
          await self.wait(after: version)
        }
        return false
      }
      group.addTask {
        try? await Task.sleep(for: timeout)
        return false
      }
      let holds = await group.next() ?? false
      group.cancelAll()
      return holds
    }
  }
}

/// Yields at once, and later after one or more changes, so that none is missed that comes after a
/// look. It ends when the signal is finished or the task is cancelled.
extension Signal: AsyncSequence {
  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let signal: Signal
    fileprivate var seen: UInt64?

    package mutating func next() async -> Void? {
      if let seen { await signal.wait(after: seen) }
      seen = signal.version
      return signal.isFinished || Task.isCancelled ? nil : ()
    }
  }

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(signal: self) }
}

/// Returns what the body returns, and cancels it once the signal is finished.
@discardableResult
func untilFinished<Result: Sendable>(
  _ signal: Signal, _ body: @escaping @Sendable () async -> Result?
) async -> Result? {
  await withTaskGroup(of: Result?.self) { group in
    group.addTask { await body() }
    group.addTask {
      for await () in signal {}
      return nil
    }
    var result: Result?
    for await finished in group {
      result = result ?? finished
      group.cancelAll()
    }
    return result
  }
}
