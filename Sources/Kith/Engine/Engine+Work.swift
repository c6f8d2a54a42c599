internal import Dispatch
internal import KithCore
internal import KithCrypto
internal import Synchronization

extension Engine {
  private enum Outcome {
    case committed
    case failed(StorageError, isCommitted: Bool)
    case reloaded(Replica)
  }

  /// Does what is due at this time, and all work.
  func tick() { work(ticks: true) }

  /// Makes accepted writes durable, sends and keeps the time until ``stopWriter()``, on its own
  /// thread, because fsync blocks and Swift's shared threads must not.
  ///
  /// Gives the memory that loading took back to the system, once nothing is to be done for a while:
  /// that takes milliseconds.
  func runWriter() async {
    await BlockingThread.run {
      var isMemoryOwed = true
      while let milliseconds = self.work(isWriter: true, ticks: true) {
        guard milliseconds > 0 else { continue }
        let limit = min(milliseconds, isMemoryOwed ? Self.quietMilliseconds : 60_000)
        let result = self.wakeup.wait(timeout: .now() + .milliseconds(Int(limit)))
        if isMemoryOwed, result == .timedOut, limit == Self.quietMilliseconds {
          Self.giveMemoryBack()
          isMemoryOwed = false
        }
      }
    }
  }

  /// If nothing wakes the writer for so long, the start is over.
  private static let quietMilliseconds: UInt64 = 250

  /// Does the shell's work until none is left, or another thread does it; if `ticks`, also what is due
  /// at this time. While the node runs, it stops once `write` is settled; the writer does the rest.
  ///
  /// Takes the lock once before the first piece of work, and once after each. Returns how long the
  /// writer may sleep; nil: the node does not run any more.
  @discardableResult
  func work(
    until write: WriteID? = nil, isWriter: Bool = false, ticks: Bool = false
  ) -> UInt64? {
    var outcome: Outcome?
    while true {
      let isSynchronised = isWriter ? SystemClock.isSynchronised : nil
      let (work, transports, later, sleep) = state.withLock { state in
        let now = clock()
        let transports = state.transports
        var later: [() -> Void] = []
        if let outcome { later = giveBack(outcome, transports, &state) }
        if ticks {
          var effects = isSynchronised.map { state.note(isSynchronised: $0, at: now) } ?? []
          effects += state.shell.wake(at: now)
          later += state.show(effects, reporting: report)
          state.resumeDue(at: now)
        }
        let work = nextWork(&state, until: write, &later)
        return (work, transports, later, isWriter ? state.sleep(from: now) : nil)
      }
      for run in later { run() }
      switch work {
      case .idle, .busy: return sleep
      case .round(let round): outcome = execute(round, over: transports)
      case .reload: outcome = reload()
      }
    }
  }

  private func nextWork(
    _ state: inout EngineState, until write: WriteID?, _ later: inout [() -> Void]
  ) -> Shell.Work {
    let now = clock()
    let isWriters =
      state.isRunning && state.problem == nil && write.map { !state.shell.isPending($0) } ?? false
    if isWriters {
      if state.shell.hasWork { wakeup.signal() }
    } else {
      if state.shell.wantsFlush, let effects = try? state.handle(.flush, at: now) {
        later += state.show(effects, reporting: report)
      }
      let work = state.shell.next(at: now)
      switch work {
      case .idle: break
      case .busy, .reload: return work
      case .round:
        state.resumePausedForBytes()
        return work
      }
    }
    if state.isWorkEndAwaited && !state.shell.isBusy {
      state.isWorkEndAwaited = false
      workEnded.signal()
    }
    return .idle
  }

  /// Returns closures to run unlocked.
  private func giveBack(
    _ outcome: Outcome, _ transports: SessionTransports, _ state: inout EngineState
  ) -> [() -> Void] {
    let aftermath =
      switch outcome {
      case .committed: state.shell.committed()
      case .failed(let error, let isCommitted):
        state.shell.failed(error, isCommitted: isCommitted, at: clock())
      case .reloaded(let replica):
        state.shell.reopen(replica, isCopy: storage.isCopy, at: clock())
      }
    if !aftermath.settled.isEmpty { state.lastSettledCount = aftermath.settled.count }
    var later = state.show(aftermath.effects, reporting: report) + state.tell(aftermath.settled)
    switch (outcome, aftermath.healthChange) {
    case (.failed(let error, _), .failed):
      state.queuedBytes = 0
      state.pauses = [:]
      later.append { self.noteFailure(error, transports) }
    case (_, .recovered): later.append { self.noteRecovery() }
    case (.failed(let error, _), _):
      later.append {
        // The retry failed too: if the database is damaged, loading it anew does not help.
        if error.code == .damaged { self.damage.raise() }
        self.progress.raise()
        self.wakeup.signal()
      }
    default: break
    }
    return later
  }

  private func noteFailure(_ error: StorageError, _ transports: SessionTransports) {
    let error = KithError(error)
    log(LogLine(.storageFailed, ["code": "\(error.code)", "problem": error.message]))
    metrics.failures.increment()
    transports.node?.closeAll()
    transports.pairings.closeAll()
    progress.raise()
    // If a program's thread did the work, the writer must now plan the retry.
    wakeup.signal()
  }

  private func noteRecovery() {
    log(LogLine(.storageRecovered))
    progress.raise()
    wakeup.signal()
  }

  private func reload() -> Outcome {
    // The loaded data may cover less than this process told others. Others replace the coverage of
    // a process by that of a new one.
    var entropy = SystemRandom()
    let process = ProcessID(entropy.draw())
    do throws(StorageError) {
      return .reloaded(try Self.replica(account, keys, process, storage))
    } catch {
      return .failed(error, isCommitted: false)
    }
  }

  private func execute(_ round: Round, over transports: SessionTransports) -> Outcome {
    let (mutations, earlySends) = (round.mutations, round.earlySends)
    var isCommitted = mutations.isEmpty
    // Set within the commit, which calls back on this thread.
    let hasSentEarly = Atomic(false)
    do throws(StorageError) {
      var round = round
      try round.fill(from: storage)
      try act(on: round.beforeCommit, over: transports)
      if !mutations.isEmpty {
        try metrics.commit { () throws(StorageError) in
          try storage.commit(mutations) {
            hasSentEarly.store(true, ordering: .relaxed)
            send(earlySends, over: transports)
          }
        }
        isCommitted = true
      }
      if !hasSentEarly.load(ordering: .relaxed) { send(earlySends, over: transports) }
      // Each commit is progress, because a status shows local writes too.
      try act(
        on: round.afterCommit, over: transports, hasProgress: isCommitted && !mutations.isEmpty)
    } catch {
      return .failed(error, isCommitted: isCommitted)
    }
    if round.weight > Self.largeRoundBytes { Self.giveMemoryBack() }
    return .committed
  }

  /// Sends messages that need no sync. Called under the storage's lock, so it reads nothing.
  private func send(_ messages: [Effect], over transports: SessionTransports) {
    var outgoing = OutgoingMessages(transports: transports)
    for case .sendEarly(let session, let bytes) in messages {
      metrics.bytesSent.increment(by: bytes.count)
      outgoing.add(bytes, to: session)
    }
    outgoing.flushAll()
  }

  /// Memory is given back to the system after a larger round.
  private static let largeRoundBytes = 4 << 20

  /// Carries out effects, and throws the first error at the end. If storage cannot read a message,
  /// its session's later messages are dropped, because they may claim that it was sent.
  ///
  /// Peers come first: what is sent goes out before anybody here is told of the progress.
  private func act(
    on effects: ArraySlice<Effect>, over transports: SessionTransports, hasProgress: Bool = false
  ) throws(StorageError) {
    var failure: StorageError?
    var cut = Set<SessionID>()
    var hasProgress = hasProgress
    var outgoing = OutgoingMessages(transports: transports)
    for effect in effects {
      switch effect {
      case .send(let session, _) where cut.contains(session): break
      case .sendEarly(let session, _) where cut.contains(session): break
      case .sendStored(let session, _) where cut.contains(session): break
      case .send(let session, let bytes), .sendEarly(let session, let bytes):
        metrics.bytesSent.increment(by: bytes.count)
        outgoing.add(bytes, to: session)
      case .sendStored(let session, let batch):
        guard transports.transport(to: session) != nil else { continue }
        // It may read much from storage.
        outgoing.flushAll()
        do throws(StorageError) {
          try send(batch, on: session, over: &outgoing)
        } catch {
          failure = failure ?? error
          cut.insert(session)
        }
      case .awaitDrain(let session): outgoing.flush(session)?.awaitDrain(session)
      case .close(let session, let reason): outgoing.flush(session)?.close(session, reason)
      case .promote(let session): outgoing.flush(session)?.promote(session)
      case .addresses(let addresses): transports.node?.setAddresses(addresses)
      case .leftBehind(let devices): transports.node?.setLeftBehind(devices)
      case .pulledAll(let session):
        outgoing.flush(session)
        transports.pairings.pulledAll(session)
      case .carrier(let carrier, let order):
        // It may read much from storage.
        outgoing.flushAll()
        do throws(StorageError) {
          try give(order, to: carrier)
        } catch {
          failure = failure ?? error
        }
      case .progress: hasProgress = true
      // The shell has handled these itself.
      case .persist, .durable, .accepted, .refused, .refusedStore, .refusedMembership, .view, .wake,
        .report:
        break
      }
    }
    outgoing.flushAll()
    if hasProgress { progress.raise() }
    if let failure { throw failure }
  }

  private func send(
    _ batch: StoredBatch, on session: SessionID, over outgoing: inout OutgoingMessages
  ) throws(StorageError) {
    let start = DispatchTime.now().uptimeNanoseconds
    defer { charge(DispatchTime.now().uptimeNanoseconds - start, to: session) }
    let missing = try batch.forEachMessage(from: storage) { bytes in
      metrics.bytesSent.increment(by: bytes.count)
      outgoing.add(bytes, to: session)
    }
    guard missing > 0 else { return }
    metrics.missing.increment(by: missing)
    report(.notStored(store: batch.store, count: missing))
  }
}

/// Gathers the messages of a round, so that each session's go out in one write to its socket: a peer
/// wakes once.
private struct OutgoingMessages {
  /// A session with more bytes is not kept waiting: larger writes gain nothing.
  private static let gatheredBytes = 64 << 10

  let transports: SessionTransports
  private var waiting: [SessionID: (messages: [[UInt8]], bytes: Int)] = [:]

  init(transports: SessionTransports) { self.transports = transports }

  mutating func add(_ message: [UInt8], to session: SessionID) {
    waiting[session, default: ([], 0)].messages.append(message)
    waiting[session]?.bytes += message.count
    if waiting[session]?.bytes ?? 0 >= Self.gatheredBytes { flush(session) }
  }

  /// Hands on a session's messages. Returns its transport, if it has one.
  @discardableResult
  mutating func flush(_ session: SessionID) -> (any SessionTransport)? {
    let transport = transports.transport(to: session)
    if let (messages, _) = waiting.removeValue(forKey: session) {
      transport?.send(messages, to: session)
    }
    return transport
  }

  mutating func flushAll() {
    for session in waiting.keys.sorted() { flush(session) }
  }
}

extension Engine {
  /// How often the writer reads the clock's status at least.
  static let longestSleepMilliseconds: UInt64 = 30_000

  /// Returns false if the node runs already or the engine is closed.
  func beginRunning(transport: any SessionTransport) -> Bool {
    state.withLock { state in
      guard !state.isRunning, !state.shell.isClosed else { return false }
      state.isRunning = true
      state.transports.node = transport
      return true
    }
  }

  /// Ends ``runWriter()`` after its queued work.
  func stopWriter() {
    state.withLock { state in
      state.isRunning = false
      state.transports.node = nil
      state.shell.endCoalescing()
    }
    wakeup.signal()
  }

  func updateClockStatus() {
    let isSynchronised = SystemClock.isSynchronised
    perform(worksHere: false) { state, effects in
      effects = state.note(isSynchronised: isSynchronised, at: clock())
    }
  }
}

extension EngineState {
  /// Tells the core the kernel's clock status, if it is new.
  fileprivate mutating func note(isSynchronised: Bool, at now: Instant) -> [Effect] {
    guard shell.clockStatus?.isSynchronised != isSynchronised else { return [] }
    let status = Input.clockStatus(
      isSynchronised: isSynchronised, hasHardware: SystemClock.hasHardware)
    return (try? handle(status, at: now)) ?? []
  }

  /// How long the writer may sleep; nil if the node does not run.
  fileprivate mutating func sleep(from now: Instant) -> UInt64? {
    let now = now.monotonicMilliseconds
    sleepsUntilMilliseconds = min(now + Engine.longestSleepMilliseconds, wakesAtMilliseconds)
    return isRunning ? sleepsUntilMilliseconds - min(now, sleepsUntilMilliseconds) : nil
  }
}
