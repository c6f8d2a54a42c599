internal import Dispatch
internal import Synchronization

/// A lock that many short holds cannot keep from others: after a millisecond a waiter gets it at
/// the next release, in order of arrival.
///
/// `Mutex` goes to the thread that asks first after a release. A busy event loop asks again before
/// a waiter has woken up, for as long as messages come. In the first millisecond this lock does the
/// same: waking a thread each time would slow many short writes.
final class FairLock<Value>: Sendable {
  private let queue = Queue()
  /// Only the thread that has taken the queue locks it.
  private let value: Mutex<Value>

  init(_ value: consuming sending Value) {
    self.value = Mutex(value)
  }

  func withLock<Result, E: Error>(
    _ body: (inout sending Value) throws(E) -> sending Result
  ) throws(E) -> sending Result {
    queue.acquire()
    defer { queue.release() }
    return try value.withLock(body)
  }
}

private final class Queue: Sendable {
  private static let fairAfterNanoseconds: UInt64 = 1_000_000

  private struct Waiter {
    let number: UInt64
    let since: UInt64
    let semaphore: DispatchSemaphore
    /// Whether it was woken, and has not tried yet.
    var isWoken = false
  }

  private struct State {
    var isTaken = false
    var lastNumber: UInt64 = 0
    /// In order of arrival; a waiter that is handed the lock is removed.
    var waiters: [Waiter] = []
  }

  private let state = Mutex(State())

  func acquire() {
    let waiter = state.withLock { state -> Waiter? in
      guard state.isTaken else {
        state.isTaken = true
        return nil
      }
      state.lastNumber += 1
      let waiter = Waiter(
        number: state.lastNumber, since: DispatchTime.now().uptimeNanoseconds,
        semaphore: DispatchSemaphore(value: 0))
      state.waiters.append(waiter)
      return waiter
    }
    guard let waiter else { return }
    var isOurs = false
    while !isOurs {
      waiter.semaphore.wait()
      isOurs = state.withLock { state in
        guard let index = state.waiters.firstIndex(where: { $0.number == waiter.number }) else {
          return true
        }
        guard !state.isTaken else {
          state.waiters[index].isWoken = false
          return false
        }
        state.isTaken = true
        state.waiters.remove(at: index)
        return true
      }
    }
  }

  func release() {
    let woken = state.withLock { state -> DispatchSemaphore? in
      guard let first = state.waiters.first else {
        state.isTaken = false
        return nil
      }
      if DispatchTime.now().uptimeNanoseconds - first.since >= Self.fairAfterNanoseconds {
        // The lock stays taken, now by the waiter.
        state.waiters.removeFirst()
        return first.semaphore
      }
      state.isTaken = false
      if first.isWoken { return nil }
      state.waiters[0].isWoken = true
      return first.semaphore
    }
    woken?.signal()
  }
}
