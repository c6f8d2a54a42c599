internal import KithCore

extension Engine {
  /// The longest wait before a failed commit is tried again.
  static let longestRetryMilliseconds: UInt64 = 30_000

  /// A commit failed: nothing that waited has happened. Tells all durable writes why, drops the
  /// sessions, and goes back to what storage holds. The caller drains.
  func fail(_ error: KithError) {
    logger.error(
      "storage refused a commit: nothing is kept until it takes one again",
      metadata: ["code": "\(error.code)", "problem": "\(error.message)"])
    meters.failures.increment()
    let (waiting, link, pairings) = state.withLock { state in
      state.outbox = []
      state.outboxBytes = 0
      state.queuedBytes = [:]
      state.pauses = [:]
      state.hasWrites = false
      state.gathersUntilMilliseconds = nil
      state.sessions = []
      state.tickAtMilliseconds = nil
      setFailed(&state, error, attempts: 0)
      if state.isClosed { state.failureWhileClosing = error }
      return (state.waiters.settleAll(.failure(error)), state.link, state.pairings)
    }
    link?.closeAll()
    pairings.closeAll()
    reload()
    for tell in waiting { tell() }
    progress.raise()
    // Whoever drained may be a program's task; the writer sleeps, and is who tries again.
    wakeup.signal()
  }

  /// Tries storage again, if it failed and the wait is over.
  func retryIfDue() {
    let isOurs = state.withLock { state in
      guard case .failed(_, _, let time) = state.health, !state.isDraining, !state.isClosed,
        clock().monotonicMilliseconds >= time
      else { return false }
      state.isDraining = true
      return true
    }
    guard isOurs else { return }
    let isSound = reload()
    state.withLock { endDraining(&$0) }
    if isSound {
      logger.notice("storage takes commits again")
      drainIfIdle()
    }
    progress.raise()
  }

  /// Makes a replica of what storage holds, shows it, and probes whether storage takes commits.
  @discardableResult
  private func reload() -> Bool {
    let fresh: Replica
    do throws(StorageError) {
      fresh = try Self.replica(account, keys, process, storage)
    } catch {
      state.withLock { setFailed(&$0, KithError(error), attempts: nextAttempt($0)) }
      return false
    }
    let reading = fresh.hybridClock
    var later: [() -> Void] = []
    state.withLock { state in
      state.replica = fresh
      state.outbox = []
      state.outboxBytes = 0
      later = reopen(&state)
    }
    for run in later { run() }
    do throws(StorageError) {
      try storage.commit([.setClock(reading)])
    } catch {
      state.withLock { setFailed(&$0, KithError(error), attempts: nextAttempt($0)) }
      return false
    }
    state.withLock { $0.health = .sound }
    return true
  }

  /// Starts the fresh replica as the old one was, and shows where they differ.
  private func reopen(_ state: inout EngineState) -> [() -> Void] {
    let now = clock()
    var later: [() -> Void] = []
    var inputs: [Input] = [
      .start(isCopy: storage.isCopy),
      .clockStatus(
        isSynchronised: state.isClockSynchronised ?? false, hasHardware: SystemClock.hasHardware),
    ]
    for (store, policy) in state.policies.sorted(by: { $0.key < $1.key }) {
      inputs.append(.open(store, policy))
    }
    for input in inputs {
      var effects = state.replica.handle(input, at: now)
      effects.removeAll { if case .view = $0 { true } else { false } }
      later += state.absorb(effects, reporting: report)
    }
    for (store, view) in state.views {
      let change = view.difference(to: state.replica.view(of: store))
      if !change.changes.isEmpty { later += view.apply([change]) }
    }
    return later
  }

  private func nextAttempt(_ state: borrowing EngineState) -> Int {
    if case .failed(_, let attempts, _) = state.health { attempts + 1 } else { 0 }
  }

  private func setFailed(_ state: inout EngineState, _ error: KithError, attempts: Int) {
    let wait = min(Self.longestRetryMilliseconds, 250 << UInt64(min(attempts, 10)))
    state.health = .failed(
      error, attempts: attempts,
      retryAtMilliseconds: clock().monotonicMilliseconds + wait)
  }
}

extension StoreView {
  /// The change that makes this view show the given values: what could not be made durable is
  /// undone, as if from outside.
  func difference(to shown: [Key: EncodedValue]) -> ViewChange {
    let current = values
    var changes: [(key: Key, value: EncodedValue?)] = []
    for (key, encoded) in shown where current[key] != (try? encoded.decoded()) {
      changes.append((key, encoded))
    }
    for key in current.keys where shown[key] == nil { changes.append((key, nil)) }
    changes.sort { $0.key < $1.key }
    return ViewChange(
      store: identifier, reason: .serverChange, changes: changes, superseded: changes.map(\.key))
  }
}
