/// Work that a shell hands out and takes back, one piece at a time.
extension Shell {
  package var isBusy: Bool { out != nil }

  /// Whether there is something to commit or to send, and no reason to wait.
  package var hasWork: Bool {
    switch health {
    case .sound: !outbox.isEmpty || coalescesUntil == nil && replica.needsFlush
    case .probing: true
    case .failed: false
    }
  }

  /// Whether to hand in `Input.flush` before ``next(at:)``.
  package var wantsFlush: Bool {
    !isBusy && health.problem == nil && coalescesUntil == nil && replica.needsFlush
  }

  /// A closed shell retries failing storage only once, so that programs see what is durable.
  package func isReloadDue(at now: Instant) -> Bool {
    guard case .failed(_, let attempts, let retryAt) = health, !isBusy else { return false }
    return retryAt <= now.monotonicMilliseconds && !(isClosed && attempts > 0)
  }

  package mutating func next(at now: Instant) -> Work {
    guard !isBusy else { return .busy }
    if isReloadDue(at: now) {
      out = .reload
      return .reload
    }
    guard !outbox.isEmpty else { return .idle }
    let round = Round(outbox)
    outbox = []
    outboxBytes = 0
    out = .round(round.writes)
    return .round(round)
  }

  /// The round is committed and carried out.
  package mutating func committed() -> Aftermath {
    guard case .round(let writes) = out.take() else { preconditionFailure("no round is out") }
    let isRecovery = health.problem != nil
    health = .sound
    if outbox.isEmpty {
      carriers = carriers.filter { if case .removed = $0.value { false } else { true } }
    }
    return Aftermath(
      settled: settle(writes, .success(())), healthChange: isRecovery ? .recovered : nil)
  }

  /// The work failed: no waiting effect has happened or will. All pending writes fail, but only once
  /// the next replica shows what is durable, or cannot be made. `isCommitted`: the round was
  /// committed, but reading the data that it sends failed.
  package mutating func failed(
    _ error: StorageError, isCommitted: Bool = false, at now: Instant
  ) -> Aftermath {
    var aftermath = Aftermath()
    var lost = outbox.compactMap { if case .durable(let write) = $0 { write } else { nil } }
    lost += replica.waitingWrites
    if case .round(let writes) = out.take() {
      if isCommitted { aftermath.settled = settle(writes, .success(())) } else { lost += writes }
    }
    if lost.contains(where: { results[$0] == nil }) {
      loss = Loss(number: (loss?.number ?? 0) + 1, error: error)
    }
    outbox = []
    outboxBytes = 0
    tickAt = nil
    coalescesUntil = nil
    if isClosed { problemWhileClosing = error }
    let attempts: Int
    switch health {
    case .sound:
      attempts = 0
      aftermath.healthChange = .failed
    case .failed(_, let before, _), .probing(_, let before):
      attempts = before + 1
      aftermath.settled += settleAll(.storage(error))
    }
    // The first retry comes at once and mostly succeeds: one commit was too large or late.
    let wait =
      attempts == 0 ? 0 : min(Self.longestRetryMilliseconds, 250 << UInt64(min(attempts, 10)))
    health = .failed(
      error, attempts: attempts, retryAtMilliseconds: now.monotonicMilliseconds + wait)
    return aftermath
  }

  /// Continues with a replica from storage, and gives it the old one's stores and clock status. Its
  /// first commit tells whether storage takes commits. The effects include each store's change back
  /// to the durable values.
  package mutating func reopen(
    _ fresh: Replica, isCopy: Bool, at now: Instant
  ) -> Aftermath {
    guard case .failed(let error, let attempts, _) = health, case .reload = out.take() else {
      preconditionFailure("no reload is out")
    }
    let old = replica
    replica = fresh
    health = .probing(error, attempts: attempts)
    outbox = [.persist([.put(.clock, fresh.hybridClock.row)])]
    var inputs: [Input] = [.start(isCopy: isCopy, boot: boot)]
    if let clockStatus {
      inputs.append(
        .clockStatus(
          isSynchronised: clockStatus.isSynchronised, hasHardware: clockStatus.hasHardware))
    }
    if let keepsHistory { inputs.append(.keepHistory(keepsHistory)) }
    inputs += openStores.sorted { $0.key < $1.key }.map { .open($0.key, $0.value) }
    inputs += carriers.sorted { $0.key < $1.key }.map { .carrier($0.key, $0.value) }
    var aftermath = Aftermath(settled: settleAll(.storage(error)))
    for input in inputs { aftermath.effects += absorb(replica.handle(input, at: now)) }
    aftermath.effects.removeAll { if case .view = $0 { true } else { false } }
    for store in Set(old.storeIdentifiers).union(replica.storeIdentifiers).sorted() {
      if let change = ViewChange(undoing: old, to: replica, in: store) {
        aftermath.effects.append(.view(change))
      }
    }
    return aftermath
  }

  // MARK: Results of writes

  private mutating func settle(
    _ writes: [WriteID], _ result: Result<Void, Unavailable>
  ) -> [WriteID] {
    let pending = writes.filter(isPending)
    for write in pending { results[write] = .settled(result) }
    return pending
  }

  mutating func settleAll(_ reason: Unavailable) -> [WriteID] {
    settle(results.keys.sorted { $0.rawValue < $1.rawValue }, .failure(reason))
  }
}

extension ViewChange {
  /// The change between two replicas' shown values, as if a peer had made it; nil if they are
  /// equal.
  fileprivate init?(undoing old: Replica, to fresh: Replica, in store: StoreIdentifier) {
    let (before, after) = (old.view(of: store), fresh.view(of: store))
    var changes: [(key: Key, value: EncodedValue?)] = []
    for (key, value) in after where before[key] != value { changes.append((key, value)) }
    for key in before.keys where after[key] == nil { changes.append((key, nil)) }
    guard !changes.isEmpty else { return nil }
    changes.sort { $0.key < $1.key }
    self.init(
      store: store, reason: .externalChange, changes: changes, superseded: changes.map(\.key))
  }
}
