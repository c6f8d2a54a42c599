internal import Dispatch
internal import KithCore
internal import Synchronization

extension Engine {
  /// Makes a write visible at once, and durable soon after, or on return if the node does not run.
  /// A write that gathers waits up to `Shell.gatheringMilliseconds` to share its commit and
  /// publication, unless something else needs a commit first.
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

  /// Writes transactions as ``StoreService/write(_:each:)`` does. A closed engine leaves the rest to
  /// the next service.
  func write(
    _ store: StoreIdentifier, each transactions: ArraySlice<[KithCore.Operation]>,
    origin: WriteOrigin
  ) throws(KithError) -> [KithError?] {
    var outcomes: [KithError?] = []
    for operations in transactions {
      do throws(KithError) {
        try write(store, operations, gathers: true, origin: origin)
        outcomes.append(nil)
      } catch {
        guard error.code == .closed else {
          outcomes.append(error)
          continue
        }
        if outcomes.isEmpty { throw error }
        break
      }
    }
    return outcomes
  }

  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation]
  ) async throws(KithError) {
    try await settle(accept(store, operations, origin: .owner))
  }

  struct AcceptedWrite: Sendable {
    fileprivate let id: WriteID
    /// Whether others write at the same time.
    fileprivate let isCrowded: Bool
  }

  /// Makes a write visible at once. The caller must ``settle(_:)`` it, which commits it. Throws
  /// `unexpectedValue` unless the store shows the expected values.
  func accept(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation],
    expecting expected: [KithCore.Operation] = [], origin: WriteOrigin
  ) throws(KithError) -> AcceptedWrite {
    retryIfDue()
    let accepted = perform(drainsHere: true, origin: origin) {
      state -> (Result<AcceptedWrite, KithError>, [Effect]) in
      // Under the lock of the write, so that no other write comes in between.
      if !expected.isEmpty {
        do throws(KithError) {
          try KithError.checkExpected(expected, shown: state.shell.replica.view(of: store))
        } catch {
          return (.failure(error), [])
        }
      }
      let (result, effects) = self.take(isAwaited: true, &state) { .write($0, store, operations) }
      return (result.map { AcceptedWrite(id: $0, isCrowded: state.lastBatch > 1) }, effects)
    }
    let write = try accepted.get()
    meters.sets.increment(by: operations.count)
    return write
  }

  /// Writes a key's newest past value, or the one with a number, as ``accept(_:_:expecting:origin:)``
  /// writes; nil if there is none.
  func acceptUndo(
    of key: String, to number: UInt64?, in store: StoreIdentifier, origin: WriteOrigin
  ) throws(KithError) -> (write: AcceptedWrite, past: PastValue)? {
    typealias Undone = (write: AcceptedWrite, past: PastValue)
    retryIfDue()
    let accepted = perform(drainsHere: true, origin: origin) {
      state -> (Result<Undone?, KithError>, [Effect]) in
      if state.shell.isClosed { return (.failure(.closedNode), []) }
      // Under the lock of the write, so that no other write comes in between.
      let known = state.shell.replica.history(of: store, key: Key(key), limit: .max)
      guard let past = known.first(where: { number == nil || $0.number == number }) else {
        return (.success(nil), [])
      }
      let (result, effects) = self.take(isAwaited: true, &state) {
        .write($0, store, [past.operation])
      }
      return (
        result.map { (AcceptedWrite(id: $0, isCrowded: state.lastBatch > 1), past) }, effects
      )
    }
    let undone = try accepted.get()
    if undone != nil { meters.sets.increment() }
    return undone
  }

  func settle(_ accepted: AcceptedWrite) async throws(KithError) {
    let write = accepted.id
    // Lets others that write at the same time join the commit.
    if accepted.isCrowded { await Task.yield() }
    let isWriters =
      accepted.isCrowded
      && state.withLock { $0.isRunning && !$0.shell.isBusy && $0.shell.isOpen(write) }
    if isWriters { wakeup.signal() } else { drain(until: write) }
    let fate: Result<Void, KithError> = await withCheckedContinuation { continuation in
      whenSettled(write) { continuation.resume(returning: $0) }
    }
    try fate.get()
  }

  /// Takes over writes as ``StoreService/adopt(_:_:_:)`` does; the account has the store.
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

  private func blockUntilSettled(_ write: WriteID) throws(KithError) {
    let semaphore = DispatchSemaphore(value: 0)
    let settled = Mutex(Result<Void, KithError>.failure(.closedNode))
    whenSettled(write) { fate in
      settled.withLock { $0 = fate }
      semaphore.signal()
    }
    semaphore.wait()
    try settled.withLock { $0 }.get()
  }

  /// Calls back once, unlocked: at once if the write's fate is known.
  private func whenSettled(
    _ write: WriteID, _ tell: @escaping @Sendable (Result<Void, KithError>) -> Void
  ) {
    let fate = state.withLock { state in
      let fate = state.fate(of: write)
      if fate == nil { state.waiters[write] = tell }
      return fate
    }
    if let fate { tell(fate) }
  }

  /// If `isAwaited`, the caller must ask for the write's fate.
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
