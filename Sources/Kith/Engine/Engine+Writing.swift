internal import Dispatch
internal import KithCore
internal import Synchronization

extension Engine: StoreService {
  func open(_ store: StoreIdentifier, policy: Policy) throws(KithError) -> StoreView {
    try open(store, policy: policy, isLooking: false)
  }

  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting: ExpectedValues
  ) throws(KithError) {
    try write(store, operations, expecting: expecting, origin: .owner)
  }

  func write(
    _ store: StoreIdentifier, each transactions: ArraySlice<[KithCore.Operation]>
  ) throws(KithError) -> [KithError?] {
    try write(store, each: transactions, origin: .owner)
  }

  var loss: WriteLoss? {
    state.withLock { $0.shell.loss }.map {
      WriteLoss(number: $0.number, error: KithError($0.error))
    }
  }

  func adopt(
    _ store: StoreIdentifier, _ policy: Policy, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key> {
    _ = try open(store, policy: read { $0.usage(of: store)?.policy } ?? policy)
    return try adopt(store, writes)
  }

  func usage(of store: StoreIdentifier) -> Usage {
    read { $0.usage(of: store) } ?? Usage(bytes: 0, keys: 0, policy: .standard)
  }

  func hiddenEntries(of store: StoreIdentifier) -> [HiddenEntry] {
    read { $0.hiddenEntries(of: store) }
  }

  func refusals(
    of store: StoreIdentifier, takingThrough number: UInt64?
  ) throws(KithError) -> [Refusal] {
    guard let number else { return read { $0.refusals(of: store) } }
    return try perform(worksHere: false) { (state, effects) throws(KithError) in
      let refusals = state.shell.replica.refusals(of: store)
      effects = try state.handle(.takeRefusals(store, through: number), at: clock())
      return refusals
    }
  }

  func history(of store: StoreIdentifier, key: String?, limit: Int) -> [PastValue] {
    read { $0.history(of: store, key: key.map { Key($0) }, limit: limit) }
  }

  func undo(_ undo: Undo, in store: StoreIdentifier) async throws(KithError) -> [PastValue] {
    guard let undone = try accept(undo, in: store, origin: .owner) else { return [] }
    try await awaitDurability(of: undone.write)
    return undone.past
  }

  func syncReport(of store: StoreIdentifier, within _: Duration) -> SyncReport {
    syncReport(of: store)
  }

  func syncReport(of store: StoreIdentifier) -> SyncReport {
    let dispatcher = state.withLock { $0.carriers }
    let settings = dispatcher.inUse.filter { dispatcher.works($0.id) }
    return read { SyncReport(of: store, $0, settings) }
  }

  /// Asks for a turn on each carrier first.
  func waitUntilComplete(_ store: StoreIdentifier, devices: Int?, timeout: Duration) async {
    let ids = lookAtCarriers()
    _ = await progress.wait(timeout: timeout) {
      let report = self.syncReport(of: store)
      if report.isComplete { return true }
      if self.read({ $0.isRevoked || $0.hasNoIncarnations && report.hasUnpublishedWrites }) {
        return true
      }
      let others = report.complete.count + report.incomplete.count
      if let devices { return report.complete.count >= devices || others < devices }
      if others == 0, ids.isEmpty { return true }
      guard !ids.isEmpty, report.carriers.count == ids.count else { return false }
      return self.read { replica in
        !ids.contains(where: replica.isBusy) && !replica.isConnected(to: report.incomplete)
      }
    }
  }
}

extension Engine {
  /// Makes a write visible at once, and durable soon after, or on return if the node does not run.
  /// Throws `unexpectedValue` unless the store shows the expected values.
  ///
  /// A write that coalesces waits up to `Shell.coalescingMilliseconds` to share its commit and
  /// publication, unless something else needs a commit first.
  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation],
    expecting expected: ExpectedValues = .none, coalesces: Bool = false, origin: WriteOrigin
  ) throws(KithError) {
    let (write, isAwaited) = try performWrite(worksHere: false, origin: origin) {
      (state, effects) throws(KithError) in
      // Under the lock of the write, so that no other write comes in between.
      if !expected.isEmpty { try KithError.check(expected, in: store, of: state.shell.replica) }
      let isAwaited = !state.isRunning
      let write = try submit(
        isAwaited: isAwaited, coalesces: coalesces && !isAwaited, &state, &effects
      ) { .write($0, store, operations) }
      return (write, isAwaited)
    }
    metrics.sets.increment(by: operations.count)
    if isAwaited { try blockUntilDurable(write) }
  }

  /// Writes transactions as ``StoreService/write(_:each:)`` does; they coalesce, and while the node
  /// does not run, one commit makes all durable on return. A closed engine leaves the rest to the next
  /// service.
  func write(
    _ store: StoreIdentifier, each transactions: ArraySlice<[KithCore.Operation]>,
    origin: WriteOrigin
  ) throws(KithError) -> [KithError?] {
    if state.withLock({ !$0.isRunning }) {
      let (outcomes, last) = try accept(store, each: Array(transactions), origin: origin)
      guard let last else { return outcomes }
      work(until: last.id)
      try blockUntilDurable(last.id)
      return outcomes
    }
    var outcomes: [KithError?] = []
    for operations in transactions {
      do throws(KithError) {
        try write(store, operations, coalesces: true, origin: origin)
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
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting expected: ExpectedValues
  ) async throws(KithError) {
    try await awaitDurability(of: accept(store, operations, expecting: expected, origin: .owner))
  }

  struct AcceptedWrite: Sendable {
    fileprivate let id: WriteID
    /// Whether others write at the same time.
    fileprivate let isCrowded: Bool
  }

  /// Makes a write visible at once. The caller must ``awaitDurability(of:)`` it, which commits it. Throws
  /// `unexpectedValue` unless the store shows the expected values.
  func accept(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation],
    expecting expected: ExpectedValues = .none, origin: WriteOrigin
  ) throws(KithError) -> AcceptedWrite {
    let write = try performWrite(worksHere: true, origin: origin) {
      (state, effects) throws(KithError) in
      if state.shell.isClosed { throw .closedNode }
      // Under the lock of the write, so that no other write comes in between.
      try KithError.check(expected, in: store, of: state.shell.replica)
      let write = try submit(isAwaited: true, &state, &effects) { .write($0, store, operations) }
      return AcceptedWrite(id: write, isCrowded: state.lastSettledCount > 1)
    }
    metrics.sets.increment(by: operations.count)
    return write
  }

  /// Makes writes visible at once, each accepted or refused alone, and together durable once the
  /// caller has settled the returned one; nil: all were refused. Throws `closed` if nothing was
  /// written.
  func accept(
    _ store: StoreIdentifier, each transactions: [[KithCore.Operation]], origin: WriteOrigin
  ) throws(KithError) -> (outcomes: [KithError?], last: AcceptedWrite?) {
    let accepted = try performWrite(worksHere: true, origin: origin) {
      (state, effects) throws(KithError) -> (outcomes: [KithError?], last: AcceptedWrite?) in
      if state.shell.isClosed { throw .closedNode }
      var (outcomes, last) = ([KithError?](), WriteID?.none)
      for operations in transactions {
        var shown: [Effect] = []
        do throws(KithError) {
          last = try submit(isAwaited: false, &state, &shown) { .write($0, store, operations) }
          outcomes.append(nil)
        } catch {
          outcomes.append(error)
        }
        effects += shown
      }
      if let last { state.shell.expect(last) }
      let isCrowded = state.lastSettledCount > 1
      return (outcomes, last.map { AcceptedWrite(id: $0, isCrowded: isCrowded) })
    }
    metrics.sets.increment(by: accepted.outcomes.count { $0 == nil })
    return accepted
  }

  /// Writes past values in one transaction, as ``accept(_:_:expecting:origin:)`` writes; nil if none
  /// are kept.
  func accept(
    _ undo: Undo, in store: StoreIdentifier, origin: WriteOrigin
  ) throws(KithError) -> (write: AcceptedWrite, past: [PastValue])? {
    let undone = try performWrite(worksHere: true, origin: origin) {
      (state, effects) throws(KithError) -> (write: AcceptedWrite, past: [PastValue])? in
      if state.shell.isClosed { throw .closedNode }
      // Under the lock of the write, so that no other write comes in between.
      let past = state.shell.replica.pastValues(for: undo, of: store)
      if past.isEmpty { return nil }
      let write = try submit(isAwaited: true, &state, &effects) {
        .write($0, store, past.map(\.operation))
      }
      return (AcceptedWrite(id: write, isCrowded: state.lastSettledCount > 1), past)
    }
    if undone != nil { metrics.sets.increment() }
    return undone
  }

  func awaitDurability(of accepted: AcceptedWrite) async throws(KithError) {
    let write = accepted.id
    // Lets others that write at the same time join the commit.
    if accepted.isCrowded { await Task.yield() }
    let isWriters =
      accepted.isCrowded
      && state.withLock { $0.isRunning && !$0.shell.isBusy && $0.shell.isPending(write) }
    if isWriters { wakeup.signal() } else { work(until: write) }
    let outcome: Result<Void, KithError> = await withCheckedContinuation { continuation in
      whenFinished(write) { continuation.resume(returning: $0) }
    }
    try outcome.get()
  }

  /// Takes over writes as ``StoreService/adopt(_:_:_:)`` does; the account has the store.
  func adopt(
    _ store: StoreIdentifier, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<Key> {
    var superseded: Set<Key> = []
    let write = try perform(worksHere: false) { (state, effects) throws(KithError) in
      let write = try submit(isAwaited: true, &state, &effects) { .adopt($0, store, writes) }
      for case .view(let change) in effects { superseded.formUnion(change.superseded) }
      return write
    }
    try blockUntilDurable(write)
    return superseded
  }

  /// Hands in a request of a person; durable on return. Throws if the core refuses it.
  func handInDurably(_ input: Input) async throws(KithError) {
    try perform(worksHere: false) { (state, effects) throws(KithError) in
      effects = try state.handle(input, at: clock())
      for case .refusedMembership(let error) in effects { throw KithError(error) }
    }
    // Flushing blocks for the disk, which Swift's shared threads must not.
    try await BlockingThread.run { () throws(KithError) in try self.flush() }
  }

  func flush() throws(KithError) {
    let barrier = try state.withLock { state throws(KithError) -> WriteID? in
      let barrier = state.nextWrite()
      switch state.shell.queueBarrier(barrier) {
      case .nothingWaits: return nil
      case .queued: return barrier
      case .refused(let error): throw KithError(error)
      }
    }
    guard let barrier else { return }
    work(until: barrier)
    try blockUntilDurable(barrier)
  }

  private func blockUntilDurable(_ write: WriteID) throws(KithError) {
    let semaphore = DispatchSemaphore(value: 0)
    let settled = Mutex(Result<Void, KithError>.failure(.closedNode))
    whenFinished(write) { outcome in
      settled.withLock { $0 = outcome }
      semaphore.signal()
    }
    semaphore.wait()
    try settled.withLock { $0 }.get()
  }

  /// Calls `completion` once, outside the lock; immediately if the outcome is known.
  private func whenFinished(
    _ write: WriteID, _ completion: @escaping @Sendable (Result<Void, KithError>) -> Void
  ) {
    let outcome = state.withLock { state in
      let outcome = state.outcome(of: write)
      if outcome == nil { state.waiters[write] = completion }
      return outcome
    }
    if let outcome { completion(outcome) }
  }

  /// Performs a write. If storage failed and its retry is due, retries storage first, outside the
  /// lock.
  private func performWrite<Value: Sendable>(
    worksHere: Bool, origin: WriteOrigin,
    _ body: (_ state: inout EngineState, _ effects: inout [Effect]) throws(KithError) -> Value
  ) throws(KithError) -> Value {
    let written = try perform(worksHere: worksHere, origin: origin) {
      (state, effects) throws(KithError) -> Value? in
      state.shell.isReloadDue(at: clock()) ? nil : try body(&state, &effects)
    }
    if let written { return written }
    work()
    return try perform(worksHere: worksHere, origin: origin, body)
  }

  /// If `isAwaited`, the caller must ask for the write's outcome.
  private func submit(
    isAwaited: Bool, coalesces: Bool = false, _ state: inout EngineState,
    _ effects: inout [Effect], _ input: (WriteID) -> Input
  ) throws(KithError) -> WriteID {
    let write = state.nextWrite()
    let input = input(write)
    effects = try state.handle(input, coalesces: coalesces, at: clock())
    for case .refused(write, let error) in effects {
      if case .write(_, _, let operations) = input { throw KithError(error, of: operations) }
      throw KithError(error)
    }
    if isAwaited { state.shell.expect(write) }
    return write
  }
}
