internal import KithCore

extension Engine {
  /// Makes a write visible at once; it is durable soon after.
  func write(_ store: StoreIdentifier, _ operations: [KithCore.Operation]) throws(KithError) {
    retryIfDue()
    _ = try perform(drainsHere: false) { state in
      self.write(store, operations, isAwaited: false, &state)
    }.get()
  }

  /// Makes a write visible at once, and returns when it is durable.
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation]
  ) async throws(KithError) {
    retryIfDue()
    let accepted = perform(drainsHere: true) { state in
      let (result, effects) = self.write(store, operations, isAwaited: true, &state)
      return (result.map { ($0, state.lastBatch > 1) }, effects)
    }
    let (write, isCrowded) = try accepted.get()
    // Where others write at the same time, leave them a moment to join the same commit.
    if isCrowded { await Task.yield() }
    if beginsDrain(for: write, isCrowded: isCrowded) { drain(until: write) }
    let settled: Result<Void, KithError>
    if let result = state.withLock({ $0.waiters.takeResult(write) }) {
      settled = result
    } else {
      settled = await withCheckedContinuation { continuation in
        let result = state.withLock { $0.waiters.wait(write, continuation) }
        if let result { continuation.resume(returning: result) }
      }
    }
    try settled.get()
  }

  /// Makes everything durable that was written before, and returns when it is.
  func flush() throws(KithError) {
    drainIfIdle()
    if let problem = state.withLock({ $0.health.problem }) { throw problem }
  }

  /// Whether the caller shall drain for its own write; otherwise somebody else does.
  private func beginsDrain(for write: WriteID, isCrowded: Bool) -> Bool {
    let (isOurs, wakes) = state.withLock { state -> (Bool, Bool) in
      guard !state.isDraining, state.waiters.isUnderWay(write) else { return (false, false) }
      if isCrowded && state.isRunning { return (false, true) }
      state.isDraining = true
      return (true, false)
    }
    if wakes { wakeup.signal() }
    return isOurs
  }

  private func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], isAwaited: Bool,
    _ state: inout EngineState
  ) -> (Result<WriteID, KithError>, [Effect]) {
    if state.isClosed { return (.failure(.closedNode), []) }
    if let problem = state.health.problem { return (.failure(problem), []) }
    state.lastWrite += 1
    let write = WriteID(rawValue: state.lastWrite)
    let effects = state.replica.handle(.write(write, store, operations), at: clock())
    for case .refused(let id, let error) in effects where id == write {
      return (.failure(KithError(error)), effects)
    }
    meters.sets.increment(by: operations.count)
    state.hasWrites = true
    if isAwaited { state.waiters.expect(write) }
    return (.success(write), effects)
  }
}
