internal import Dispatch
internal import KithCore

/// The durable writes that are under way and who waits for them.
struct DurableWaiters {
  private enum Waiter {
    case expected
    case waiting(CheckedContinuation<Result<Void, KithError>, Never>)
    case blocked(DispatchSemaphore)
    case done(Result<Void, KithError>)
  }

  private var waiters: [WriteID: Waiter] = [:]
  /// How many writes are under way.
  var count: Int { waiters.count }

  /// Somebody will ask for the fate of this write.
  mutating func expect(_ write: WriteID) { waiters[write] = .expected }

  /// The fate of a write, if it is known; asking for it forgets it.
  mutating func takeResult(_ write: WriteID) -> Result<Void, KithError>? {
    guard case .done(let result) = waiters[write] else { return nil }
    waiters[write] = nil
    return result
  }

  /// Waits, or returns the fate where it is known already.
  mutating func wait(
    _ write: WriteID, _ continuation: CheckedContinuation<Result<Void, KithError>, Never>
  ) -> Result<Void, KithError>? {
    if let result = takeResult(write) { return result }
    waiters[write] = .waiting(continuation)
    return nil
  }

  /// Blocks a thread, or returns the fate where it is known already. Once the semaphore is
  /// signalled the fate is there to be taken.
  mutating func block(
    _ write: WriteID, _ semaphore: DispatchSemaphore
  ) -> Result<Void, KithError>? {
    if let result = takeResult(write) { return result }
    waiters[write] = .blocked(semaphore)
    return nil
  }

  /// Whether the fate of a write is open.
  func isUnderWay(_ write: WriteID) -> Bool {
    switch waiters[write] {
    case nil, .done: false
    case .expected, .waiting, .blocked: true
    }
  }

  /// Settles a write, and returns how to tell who waits for it, once no lock is held.
  mutating func settle(_ write: WriteID, _ result: Result<Void, KithError>) -> (() -> Void)? {
    switch waiters[write] {
    case nil, .done: return nil
    case .expected:
      waiters[write] = .done(result)
      return nil
    case .waiting(let continuation):
      waiters[write] = nil
      return { continuation.resume(returning: result) }
    case .blocked(let semaphore):
      waiters[write] = .done(result)
      return { semaphore.signal() }
    }
  }

  /// Settles everything that is under way, and returns how to tell who waits.
  mutating func settleAll(_ result: Result<Void, KithError>) -> [() -> Void] {
    waiters.keys.compactMap { settle($0, result) }
  }
}
