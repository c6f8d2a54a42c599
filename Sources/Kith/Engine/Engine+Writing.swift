internal import Dispatch
internal import KithCore

extension Engine {
  /// Makes a write visible at once. It is durable soon after, or, if the node does not run, on return.
  /// A write that gathers waits up to `Shell.gatheringMilliseconds` for others, with which it is
  /// committed and published, unless something else wants a commit before.
  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], gathers: Bool = false,
    origin: WriteOrigin
  ) throws(KithError) {
    retryIfDue()
    let accepted = perform(drainsHere: false, origin: origin) { state in
      let isAwaited = !state.isRunning
      let (result, effects) = self.take(
        isAwaited: isAwaited, gathers: gathers && !isAwaited, &state
      ) { .write($0, store, operations) }
      return (result.map { ($0, isAwaited) }, effects)
    }
    let (write, isAwaited) = try accepted.get()
    meters.sets.increment(by: operations.count)
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

  /// Makes a program's write visible at once. The caller must ``settle(_:)`` it, which has it
  /// committed.
  func accept(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], origin: WriteOrigin
  ) throws(KithError) -> AcceptedWrite {
    retryIfDue()
    let accepted = perform(drainsHere: true, origin: origin) { state in
      let (result, effects) = self.take(isAwaited: true, &state) { .write($0, store, operations) }
      return (result.map { AcceptedWrite(id: $0, isCrowded: state.lastBatch > 1) }, effects)
    }
    let write = try accepted.get()
    meters.sets.increment(by: operations.count)
    return write
  }

  /// Returns once an accepted write is durable.
  func settle(_ accepted: AcceptedWrite) async throws(KithError) {
    let write = accepted.id
    // If others write at the same time, leave them a moment to join the same commit.
    if accepted.isCrowded { await Task.yield() }
    let isWriters =
      accepted.isCrowded
      && state.withLock { $0.isRunning && !$0.shell.isBusy && $0.shell.isOpen(write) }
    if isWriters { wakeup.signal() } else { drain(until: write) }
    let settled: Result<Void, KithError>
    if let fate = state.withLock({ $0.fate(of: write) }) {
      settled = fate
    } else {
      settled = await withCheckedContinuation { continuation in
        let fate = state.withLock { state in
          let fate = state.fate(of: write)
          if fate == nil { state.waiters[write] = .suspended(continuation) }
          return fate
        }
        if let fate { continuation.resume(returning: fate) }
      }
    }
    try settled.get()
  }

  /// Takes in writes that were made while nobody was signed in, and returns when they are durable;
  /// it blocks for as long as the disk takes. Writes that it took in before are skipped. With no
  /// writes it forgets which those are, because the local stores do not hold them any more.
  ///
  /// - Returns: The keys whose writes lost to the account's entries.
  func adopt(
    _ store: StoreIdentifier, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key> {
    var superseded: Set<Key> = []
    let accepted = perform(drainsHere: false) { state in
      let (result, effects) = self.take(isAwaited: true, &state) { .adopt($0, store, writes) }
      for case .view(let change) in effects { superseded.formUnion(change.superseded) }
      return (result, effects)
    }
    try blockUntilSettled(accepted.get())
    return superseded
  }

  /// Makes everything durable that was accepted before, and returns when it is; it blocks for as
  /// long as the disk takes.
  func flush() throws(KithError) {
    let mark = state.withLock { state -> Result<WriteID?, KithError> in
      let mark = state.nextWrite()
      return switch state.shell.mark(mark) {
      case .nothingWaits: .success(nil)
      case .queued: .success(mark)
      case .refused(let error): .failure(KithError(error))
      }
    }
    guard let mark = try mark.get() else { return }
    drain(until: mark)
    try blockUntilSettled(mark)
  }

  /// Waits on this thread for the fate of a write.
  private func blockUntilSettled(_ write: WriteID) throws(KithError) {
    let semaphore = DispatchSemaphore(value: 0)
    var fate = state.withLock { state in
      let fate = state.fate(of: write)
      if fate == nil { state.waiters[write] = .blocked(semaphore) }
      return fate
    }
    if fate == nil {
      semaphore.wait()
      fate = state.withLock { $0.fate(of: write) }
    }
    try (fate ?? .failure(.closedNode)).get()
  }

  /// Hands a program's transaction to the shell. If it is awaited, the caller asks for its fate.
  private func take(
    isAwaited: Bool, gathers: Bool = false, _ state: inout EngineState,
    _ input: (WriteID) -> Input
  ) -> (Result<WriteID, KithError>, [Effect]) {
    let write = state.nextWrite()
    switch state.take(input(write), gathers: gathers, at: clock()) {
    case .failure(let error): return (.failure(error), [])
    case .success(let effects):
      for case .refused(write, let error) in effects {
        return (.failure(KithError(error)), effects)
      }
      if isAwaited { state.shell.expect(write) }
      return (.success(write), effects)
    }
  }
}
