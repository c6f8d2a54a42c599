internal import KithCore

extension Engine {
  /// Drains if nobody does and there is something to do.
  func drainIfIdle() {
    let isOurs = state.withLock { state in
      guard !state.isDraining, state.hasWork else { return false }
      state.isDraining = true
      return true
    }
    if isOurs { drain(until: nil) }
  }

  /// Commits and sends round after round until nothing waits, or, while the node runs, until the
  /// given write is settled: the rest is the writer's. The caller holds `isDraining`.
  func drain(until write: WriteID?) {
    while let round = nextRound(until: write) {
      if let error = execute(round) {
        fail(error)
      }
    }
  }

  /// Takes everything that waits; nil once this drainer is done, which gives `isDraining` back.
  private func nextRound(until write: WriteID?) -> [Effect]? {
    var later: [() -> Void] = []
    let round = state.withLock { state -> [Effect]? in
      if let write, state.isRunning, !state.waiters.isUnderWay(write) {
        endDraining(&state)
        if state.hasWork { wakeup.signal() }
        return nil
      }
      guard state.hasWork else {
        endDraining(&state)
        return nil
      }
      if state.needsFlush {
        state.hasWrites = false
        state.gathersUntilMilliseconds = nil
        let effects = state.replica.handle(.flush, at: clock())
        later = state.absorb(effects, reporting: report)
      }
      guard !state.outbox.isEmpty else {
        endDraining(&state)
        return nil
      }
      let round = state.outbox
      state.outbox = []
      state.outboxBytes = 0
      state.resumeDrained()
      return round
    }
    for run in later { run() }
    return round
  }

  /// Gives `isDraining` back.
  func endDraining(_ state: inout EngineState) {
    state.isDraining = false
    if state.isDrainAwaited {
      state.isDrainAwaited = false
      drained.signal()
    }
  }

  /// Does what stands before a round's first commit, commits all that it wants durable at once,
  /// then does the rest in order. Joining the commits only ever makes an effect later than asked,
  /// never earlier.
  private func execute(_ round: [Effect]) -> KithError? {
    let first = round.firstIndex { if case .persist = $0 { true } else { false } }
    var bytes = 0
    do throws(StorageError) {
      let round = try round.filled(from: storage)
      try act(on: round[..<(first ?? round.endIndex)])
      guard let first else { return nil }
      var mutations: [Mutation] = []
      for case .persist(let some) in round[first...] { mutations += some }
      if !mutations.isEmpty {
        try meters.commit { () throws(StorageError) in try storage.commit(mutations) }
      }
      try act(on: round[first...])
      bytes = round.reduce(0) { $0 + $1.byteCount }
    } catch {
      return KithError(error)
    }
    if bytes > Self.largeRoundBytes { Self.giveMemoryBack() }
    return nil
  }

  /// After a round of more bytes memory is given back to the system.
  private static let largeRoundBytes = 4 << 20

  /// Does what needs no commit any more. If a message cannot be read from storage, nothing more is
  /// sent on its session, for what follows may say that it came; all else is done.
  ///
  /// - Throws: The first such error, at the end.
  private func act(on effects: ArraySlice<Effect>) throws(StorageError) {
    var failure: StorageError?
    var cut = Set<SessionID>()
    var settled: [WriteID] = []
    var hasProgress = false
    let (link, pairings) = state.withLock { ($0.link, $0.pairings) }
    func way(to session: SessionID) -> (any SessionLink)? {
      session.isPairing ? pairings : link
    }
    for effect in effects {
      switch effect {
      case .send(let session, _) where cut.contains(session): break
      case .sendStored(let session, _) where cut.contains(session): break
      case .send(let session, let bytes):
        meters.sent(bytes.count)
        way(to: session)?.send(bytes, to: session)
      case .sendStored(let session, let batch):
        guard let link = way(to: session) else { continue }
        do throws(StorageError) {
          try send(batch, on: session, over: link)
        } catch {
          failure = failure ?? error
          cut.insert(session)
        }
      case .awaitRoom(let session): way(to: session)?.awaitRoom(session)
      case .close(let session, let reason): way(to: session)?.close(session, reason)
      case .promote(let session): link?.promote(session)
      case .durable(let write): settled.append(write)
      case .addresses(let addresses): link?.setAddresses(addresses)
      case .leftBehind(let devices): link?.setLeftBehind(devices)
      case .pulledAll(let session): pairings.pulledAll(session)
      case .progress, .refusals: hasProgress = true
      case .persist, .accepted, .refused, .refusedStore, .refusedMembership, .view, .wake, .report:
        break
      }
    }
    settle(settled)
    if hasProgress { progress.raise() }
    if let failure { throw failure }
  }

  private func send(
    _ batch: StoredBatch, on session: SessionID, over link: any SessionLink
  ) throws(StorageError) {
    let missing = try batch.forEachMessage(from: storage) { bytes in
      meters.sent(bytes.count)
      link.send(bytes, to: session)
    }
    guard missing > 0 else { return }
    meters.missing.increment(by: missing)
    report(.notStored(store: batch.store, count: missing))
  }

  private func settle(_ writes: [WriteID]) {
    guard !writes.isEmpty else { return }
    let waiting = state.withLock { state in
      state.lastBatch = writes.count
      return writes.compactMap { state.waiters.settle($0, .success(())) }
    }
    for tell in waiting { tell() }
  }
}
