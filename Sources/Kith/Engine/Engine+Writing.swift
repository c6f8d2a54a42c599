internal import Dispatch
internal import KithCore

extension Engine {
  /// How long a write that gathers waits for others, in milliseconds: about one turn of a run loop.
  static let gatheringMilliseconds: UInt64 = 20

  /// Makes a write visible at once; it is durable soon after, or, where the node does not run, on
  /// return. Where it gathers, what follows within ``gatheringMilliseconds`` is committed and
  /// published with it, unless something else wants a commit before.
  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], gathers: Bool = false
  ) throws(KithError) {
    retryIfDue()
    let accepted = perform(drainsHere: false) { state in
      let isAwaited = !state.isRunning
      let (result, effects) = self.write(
        store, operations, isAwaited: isAwaited, gathers: gathers && !isAwaited, &state)
      return (result.map { ($0, isAwaited) }, effects)
    }
    let (write, isAwaited) = try accepted.get()
    if isAwaited { try blockUntilSettled(write) }
  }

  /// Makes a write visible at once, and returns when it is durable.
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation]
  ) async throws(KithError) {
    try await settle(accept(store, operations, origin: .owner))
  }

  /// A write that shows, and is not durable yet.
  struct AcceptedWrite: Sendable {
    fileprivate let id: WriteID
    /// Whether others write at the same time.
    fileprivate let isCrowded: Bool
  }

  /// Makes a program's write visible at once. Who accepts must ``settle(_:)``, which sees to its
  /// commit.
  func accept(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], origin: WriteOrigin
  ) throws(KithError) -> AcceptedWrite {
    retryIfDue()
    let accepted = perform(drainsHere: true, origin: origin) { state in
      let (result, effects) = self.write(store, operations, isAwaited: true, &state)
      return (result.map { AcceptedWrite(id: $0, isCrowded: state.lastBatch > 1) }, effects)
    }
    return try accepted.get()
  }

  /// Returns once an accepted write is durable.
  func settle(_ accepted: AcceptedWrite) async throws(KithError) {
    let write = accepted.id
    // Where others write at the same time, leave them a moment to join the same commit.
    if accepted.isCrowded { await Task.yield() }
    if beginsDrain(for: write, isCrowded: accepted.isCrowded) { drain(until: write) }
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

  /// Takes in what was written while nobody was signed in, and returns when it is durable; it blocks
  /// for as long as the disk takes. Writes that it took in before are passed over. With none it forgets
  /// which those are: the local stores hold them no more.
  ///
  /// - Returns: The keys whose writes lost to what the account has.
  func adopt(
    _ store: StoreIdentifier, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key> {
    var superseded: Set<Key> = []
    let accepted = perform(drainsHere: false) { state -> (Result<WriteID, KithError>, [Effect]) in
      if state.isClosed { return (.failure(.closedNode), []) }
      if let problem = state.health.problem { return (.failure(problem), []) }
      state.lastWrite += 1
      let write = WriteID(rawValue: state.lastWrite)
      let effects = state.replica.handle(.adopt(write, store, writes), at: clock())
      for case .refused(write, let error) in effects {
        return (.failure(KithError(error)), effects)
      }
      for case .view(let change) in effects { superseded.formUnion(change.superseded) }
      state.hasWrites = true
      state.waiters.expect(write)
      return (.success(write), effects)
    }
    try blockUntilSettled(accepted.get())
    return superseded
  }

  /// Makes everything durable that was accepted before, and returns when it is; it blocks for as
  /// long as the disk takes.
  func flush() throws(KithError) {
    var later: [() -> Void] = []
    let waited = state.withLock { state -> Result<WriteID?, KithError> in
      if let problem = state.health.problem { return .failure(problem) }
      state.endGathering()
      guard state.hasWork || state.isDraining else { return .success(nil) }
      state.hasWrites = false
      later = state.absorb(state.replica.handle(.flush, at: clock()), reporting: report)
      // Behind all that waits, so that it is settled with the last of it.
      state.lastWrite += 1
      let mark = WriteID(rawValue: state.lastWrite)
      state.waiters.expect(mark)
      state.outbox.append(.durable(mark))
      return .success(mark)
    }
    for run in later { run() }
    guard let mark = try waited.get() else { return }
    if beginsDrain(for: mark, isCrowded: false) { drain(until: mark) }
    try blockUntilSettled(mark)
  }

  /// Waits on this thread for the fate of a write that somebody drains.
  private func blockUntilSettled(_ write: WriteID) throws(KithError) {
    let semaphore = DispatchSemaphore(value: 0)
    var result = state.withLock { $0.waiters.block(write, semaphore) }
    if result == nil {
      semaphore.wait()
      result = state.withLock { $0.waiters.takeResult(write) }
    }
    try (result ?? .failure(.closedNode)).get()
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
    gathers: Bool = false, _ state: inout EngineState
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
    if gathers {
      let end = clock().monotonicMilliseconds + Self.gatheringMilliseconds
      state.gathersUntilMilliseconds = state.gathersUntilMilliseconds ?? end
    } else {
      state.hasWrites = true
    }
    if isAwaited { state.waiters.expect(write) }
    return (.success(write), effects)
  }
}
