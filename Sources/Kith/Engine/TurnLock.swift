internal import Dispatch
internal import Synchronization

/// A lock that a flood of short holds cannot keep from others: a waiter that has waited for a
/// millisecond is handed the lock when it is next given back, in the order in which waiters came.
///
/// `Mutex` goes to the thread that asks first after it was given back. A thread that gives it back
/// and asks again at once, as an event loop with many messages does, gets it before a waiting
/// thread has woken up, for as long as the messages last. Before the millisecond is over this lock
/// does the same: handing over to a sleeping thread each time would cost many short writes more
/// than it gives.
final class TurnLock<Value>: Sendable {
  private let turns = Turns()
  /// Entered only by the thread whose turn it is.
  private let value: Mutex<Value>

  init(_ value: consuming sending Value) {
    self.value = Mutex(value)
  }

  /// Calls its body with the value, once this thread's turn has come.
  func withLock<Result, E: Error>(
    _ body: (inout sending Value) throws(E) -> sending Result
  ) throws(E) -> sending Result {
    turns.take()
    defer { turns.giveBack() }
    return try value.withLock(body)
  }
}

/// Hands turns to waiting threads.
private final class Turns: Sendable {
  /// After so long a waiter is handed the lock, in nanoseconds.
  private static let patienceNanoseconds: UInt64 = 1_000_000

  private struct Waiter {
    let number: UInt64
    let since: UInt64
    let semaphore: DispatchSemaphore
    /// Whether it was woken up to try, and has not tried yet.
    var isWoken = false
  }

  private struct State {
    var isTaken = false
    var lastNumber: UInt64 = 0
    /// In the order in which they came. A waiter that is handed the lock is removed.
    var waiters: [Waiter] = []
  }

  private let state = Mutex(State())

  func take() {
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
        guard let place = state.waiters.firstIndex(where: { $0.number == waiter.number }) else {
          return true
        }
        guard !state.isTaken else {
          state.waiters[place].isWoken = false
          return false
        }
        state.isTaken = true
        state.waiters.remove(at: place)
        return true
      }
    }
  }

  func giveBack() {
    let woken = state.withLock { state -> DispatchSemaphore? in
      guard let first = state.waiters.first else {
        state.isTaken = false
        return nil
      }
      if DispatchTime.now().uptimeNanoseconds - first.since >= Self.patienceNanoseconds {
        // It stays taken: by the waiter from now on.
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
