/// The state around a replica, as a value: waiting effects, whether storage takes commits, awaited
/// writes, due times. It does no I/O, holds no lock and reads no clock.
///
/// A driver hands in inputs with the time, and does the work one piece at a time. The engine, the
/// simulator's devices and the tests drive the same value:
///
/// ```swift
/// if shell.wantsFlush { show(shell.handle(.flush, at: now)) }
/// switch shell.next(at: now) {
/// case .round(let round):  // do beforeCommit, commit, do afterCommit; then committed() or failed(…)
/// case .reload:  // make a replica of what storage holds; then reopen(…) or failed(…)
/// case .idle, .busy: return
/// }
/// ```
package struct Shell: Sendable {
  /// How long a write waits for others: about one pass of a run loop.
  package static let coalescingMilliseconds: UInt64 = 20
  /// The longest wait before storage is retried.
  package static let longestRetryMilliseconds: UInt64 = 30_000

  /// Whether storage takes commits.
  package enum Health: Sendable {
    case sound
    /// A commit failed; a new replica is made at this monotonic time.
    case failed(StorageError, attempts: Int, retryAtMilliseconds: UInt64)
    /// A new replica's first commit is being tried.
    case probing(StorageError, attempts: Int)

    /// Nil if storage takes commits.
    package var problem: StorageError? {
      switch self {
      case .sound: nil
      case .failed(let error, _, _), .probing(let error, _): error
      }
    }
  }

  /// Why an input is refused, or a write is lost.
  package enum Unavailable: Error, Hashable, Sendable {
    case closed
    case storage(StorageError)
  }

  package enum Response: Sendable {
    /// Carry these effects out now: they depend on no commit. The others wait in ``Shell/outbox``.
    case handled([Effect])
    /// Storage fails; the next replica gets it.
    case deferred
    case refused(Unavailable)
  }

  package enum Work: Sendable {
    case idle
    /// Another caller works, and asks again afterwards.
    case busy
    /// Commit and send; then ``Shell/committed()`` or ``Shell/failed(_:isCommitted:at:)``.
    case round(Round)
    /// Make a replica from storage; then ``Shell/reopen(_:isCopy:at:)`` or
    /// ``Shell/failed(_:isCommitted:at:)``.
    case reload
  }

  /// The consequences of finished work.
  package struct Aftermath: Sendable {
    /// Carry these out now.
    package var effects: [Effect] = []
    /// Writes whose result is known now.
    package var settled: [WriteID] = []
    /// Nil if storage is as before.
    package var healthChange: HealthChange?
  }

  /// A change of ``Shell/health``.
  package enum HealthChange: Sendable {
    /// The driver ends all sessions: the next replica knows none.
    case failed
    case recovered
  }

  /// The result of queueing a barrier.
  package enum Barrier: Sendable {
    /// Everything is durable already.
    case nothingWaits
    /// It is settled like a write, after all earlier inputs.
    case queued
    case refused(StorageError)
  }

  /// A failure that lost accepted writes whose results nobody awaits.
  package struct Loss: Sendable {
    /// The count of losses so far: 1, 2, 3 …
    package var number: Int
    package var error: StorageError
  }

  enum Out {
    case round([WriteID])
    case reload
  }

  enum WriteResult {
    case pending
    case settled(Result<Void, Unavailable>)
  }

  /// Callers only read it, or ask for values that it computes on demand.
  package var replica: Replica
  /// The effects of the next round, in order.
  package internal(set) var outbox: [Effect] = []
  /// The weight of the effects in the outbox.
  package internal(set) var outboxBytes = 0
  package internal(set) var health = Health.sound
  /// The last loss; nil: none.
  package internal(set) var loss: Loss?
  package private(set) var isClosed = false
  /// The run of the host; nil: unknown.
  package private(set) var boot: BootID?
  /// Stores that programs opened. Each new replica opens them again.
  package private(set) var openStores: [StoreIdentifier: Policy] = [:]
  /// The kernel's clock status as last handed in; nil before.
  package private(set) var clockStatus: (isSynchronised: Bool, hasHardware: Bool)?
  /// The program's setting; nil: as stored.
  package private(set) var keepsHistory: Bool?
  /// How each carrier was last attached, or that its removal is not durable.
  package internal(set) var carriers: [CarrierID: CarrierEvent] = [:]
  /// The work handed out: at most one piece.
  var out: Out?
  /// When the replica wants a tick.
  var tickAt: UInt64?
  /// When coalescing ends; nil: no write waits for others.
  var coalescesUntil: UInt64?
  var results: [WriteID: WriteResult] = [:]
  /// The last error after closing; storage may take commits again since.
  var problemWhileClosing: StorageError?

  /// `replica`: one that was given no input yet.
  package init(_ replica: Replica) {
    self.replica = replica
  }

  // MARK: Inputs

  /// Handles one input; a closed shell handles only `flush`. While storage fails, `open`,
  /// `clockStatus`, `keepHistory` and a carrier's `attached` and `removed` are kept for the next
  /// replica, and all else is refused. A replica whose first commit is being tried gets them at
  /// once.
  ///
  /// If `coalesces`, a write waits up to ``coalescingMilliseconds`` for others, unless something else
  /// wants a commit.
  package mutating func handle(
    _ input: Input, coalesces: Bool = false, at now: Instant
  ) -> Response {
    if case .flush = input { coalescesUntil = nil } else if isClosed { return .refused(.closed) }
    if let problem = health.problem {
      guard Self.isReplayed(input) else { return .refused(.storage(problem)) }
      // The replica whose first commit is being tried may stay.
      guard case .probing = health else {
        remember(input)
        return .deferred
      }
    }
    let beginsToCoalesce = coalesces && coalescesUntil == nil && !replica.needsFlush
    let effects = absorb(replica.handle(input, at: now))
    switch input {
    case .start(_, let boot): self.boot = boot
    case .open(let store, _):
      let isRefused = effects.contains {
        if case .refusedStore(store, _) = $0 { true } else { false }
      }
      if !isRefused { remember(input) }
    case _ where Self.isReplayed(input): remember(input)
    case .write, .adopt:
      if beginsToCoalesce {
        coalescesUntil = now.monotonicMilliseconds + Self.coalescingMilliseconds
      } else if !coalesces {
        coalescesUntil = nil
      }
    default: break
    }
    return .handled(effects)
  }

  /// Whether each new replica gets it again.
  private static func isReplayed(_ input: Input) -> Bool {
    switch input {
    case .open, .clockStatus, .keepHistory, .carrier(_, .attached), .carrier(_, .removed): true
    default: false
    }
  }

  private mutating func remember(_ input: Input) {
    switch input {
    case .open(let store, let policy): openStores[store] = policy
    case .clockStatus(let isSynchronised, let hasHardware):
      clockStatus = (isSynchronised, hasHardware)
    case .keepHistory(let keeps): keepsHistory = keeps
    case .carrier(let id, let event): carriers[id] = event
    default: break
    }
  }

  /// Queues the effects that wait for a commit or for earlier effects. Returns the others.
  mutating func absorb(_ effects: [Effect]) -> [Effect] {
    var now: [Effect] = []
    for effect in effects {
      switch effect {
      case .view, .report, .accepted, .refused, .refusedStore, .refusedMembership:
        now.append(effect)
      case .wake(let time): tickAt = time
      default:
        outboxBytes += effect.weight
        outbox.append(effect)
      }
    }
    return now
  }

  // MARK: Time

  /// When ``wake(at:)`` has work, or storage is retried; nil: never.
  package var wakesAtMilliseconds: UInt64? {
    switch health {
    case .sound: [tickAt, coalescesUntil].compactMap(\.self).min()
    case .failed(_, let attempts, let retryAt): isBusy || isClosed && attempts > 0 ? nil : retryAt
    case .probing: nil
    }
  }

  /// Does what is due. Returns the effects to carry out now.
  package mutating func wake(at now: Instant) -> [Effect] {
    guard health.problem == nil else { return [] }
    if let end = coalescesUntil, end <= now.monotonicMilliseconds { coalescesUntil = nil }
    guard let tick = tickAt, tick <= now.monotonicMilliseconds else { return [] }
    tickAt = nil
    guard case .handled(let effects) = handle(.tick, at: now) else { return [] }
    return effects
  }

  package mutating func endCoalescing() { coalescesUntil = nil }

  // MARK: Writes that are awaited

  /// Keeps the write's result until it is taken. Call it in the step that accepted the write.
  package mutating func expect(_ write: WriteID) { results[write] = .pending }

  /// Whether it is neither durable nor lost yet.
  package func isPending(_ write: WriteID) -> Bool {
    if case .pending = results[write] { true } else { false }
  }

  /// The write's result, returned once; nil while the write is pending.
  package mutating func takeResult(of write: WriteID) -> Result<Void, Unavailable>? {
    guard case .settled(let result) = results[write] else { return nil }
    results[write] = nil
    return result
  }

  /// Queues a barrier: an empty write, which is settled after all earlier inputs. Its success says
  /// nothing of writes that ``loss`` counts.
  package mutating func queueBarrier(_ write: WriteID) -> Barrier {
    if let problem = health.problem { return .refused(problem) }
    coalescesUntil = nil
    guard isBusy || hasWork else { return .nothingWaits }
    outbox.append(.durable(write))
    expect(write)
    return .queued
  }

  // MARK: Closing

  /// Takes no more inputs, except `flush`. Earlier ones are still handed out as work.
  package mutating func close() {
    isClosed = true
    coalescesUntil = nil
    endEarlySending()
  }

  /// Sends nothing early any more, because the process is about to end.
  package mutating func endEarlySending() {
    guard health.problem == nil else { return }
    _ = absorb(replica.endEarlySending())
  }

  /// Pending writes never become durable. Returns them, and why an earlier input is not durable.
  package mutating func end() -> (settled: [WriteID], problem: StorageError?) {
    (settleAll(.closed), problemWhileClosing ?? health.problem)
  }
}
