/// The state that surrounds a replica wherever it runs, as a value: the effects that wait, whether
/// storage takes commits, the writes whose callers wait, and when something is due.
///
/// A driver hands in inputs with the time, and does the work that the shell hands out, one piece at
/// a time. The engine, the simulator's devices and the tests drive the same value:
///
/// ```swift
/// if shell.wantsFlush { show(shell.take(.flush, at: now)) }
/// switch shell.next(at: now) {
/// case .round(let round):  // do early, commit, do late; then committed() or failed(…)
/// case .reload:  // make a replica of what storage holds; then reopen(…) or failed(…)
/// case .idle, .busy: return
/// }
/// ```
///
/// It does no I/O, holds no lock and reads no clock.
package struct Shell: Sendable {
  /// How long a write that gathers waits for others, in milliseconds: about one turn of a run loop.
  package static let gatheringMilliseconds: UInt64 = 20
  /// The longest wait before failing storage is tried again.
  package static let longestRetryMilliseconds: UInt64 = 30_000

  /// Whether storage takes commits.
  package enum Health: Sendable {
    /// It does.
    case sound
    /// It did not. At a reading of the monotonic clock the replica is made anew.
    case failed(StorageError, attempts: Int, retryAtMilliseconds: UInt64)
    /// The replica was made anew. Its first commit tells.
    case probing(StorageError, attempts: Int)

    /// Why storage takes none; nil: it does.
    package var problem: StorageError? {
      switch self {
      case .sound: nil
      case .failed(let error, _, _), .probing(let error, _): error
      }
    }
  }

  /// Why nothing more is taken.
  package enum Unavailable: Error, Hashable, Sendable {
    /// The shell was closed.
    case closed
    /// Storage takes no commits.
    case storage(StorageError)
  }

  /// The fate of an input.
  package enum Taken: Sendable {
    /// The replica has it. These effects depend on no commit and are carried out now; the others
    /// wait in ``Shell/outbox``.
    case handled([Effect])
    /// Storage fails; the next replica gets it.
    case kept
    /// It was dropped.
    case refused(Unavailable)
  }

  /// The work that a driver does next.
  package enum Work: Sendable {
    /// There is none.
    case idle
    /// Another caller of the same driver does some, and asks again afterwards.
    case busy
    /// Commit and send; then ``Shell/committed()`` or ``Shell/failed(_:isCommitted:at:)``.
    case round(Round)
    /// Make a replica of what storage holds; then ``Shell/reopen(_:isCopy:at:)`` or
    /// ``Shell/failed(_:isCommitted:at:)``.
    case reload
  }

  /// The consequences of work that is done.
  package struct Aftermath: Sendable {
    /// Effects that are carried out now, as those of ``Taken/handled(_:)``.
    package var effects: [Effect] = []
    /// Writes whose fate is known from now on.
    package var settled: [WriteID] = []
    /// Whether storage has begun to fail, or to take commits again; nil: as before.
    package var turn: Turn?
  }

  /// A change of ``Shell/health``.
  package enum Turn: Sendable {
    /// Storage has begun to fail. The driver ends all sessions: the next replica knows none.
    case failed
    /// Storage takes commits again.
    case recovered
  }

  /// The fate of a mark in the queue.
  package enum Marked: Sendable {
    /// All is durable already.
    case nothingWaits
    /// The mark is settled as a write is, after all that was taken before.
    case queued
    /// Storage takes no commits.
    case refused(StorageError)
  }

  /// Work that was handed out.
  enum Out {
    case round([WriteID])
    case reload
  }

  enum Fate {
    case open
    case settled(Result<Void, Unavailable>)
  }

  /// The replica. Callers only read it, or ask for values that it computes on demand.
  package var replica: Replica
  /// Effects that wait for the next round, in order.
  package internal(set) var outbox: [Effect] = []
  /// Bytes of messages and change sets that wait.
  package internal(set) var outboxBytes = 0
  /// Whether storage takes commits.
  package internal(set) var health = Health.sound
  /// Whether inputs are refused for good.
  package private(set) var isClosed = false
  /// The limits under which programs opened stores. Each new replica opens the stores under these.
  package private(set) var opened: [StoreIdentifier: Policy] = [:]
  /// The last status of the clock from the kernel; nil before the first.
  package private(set) var clockStatus: (isSynchronised: Bool, hasHardware: Bool)?
  /// The work that is not done yet: never more than one piece.
  var out: Out?
  /// When the replica wants a tick.
  var tickAt: UInt64?
  /// Until when writes that gather wait for others; nil: none waits.
  var gathersUntil: UInt64?
  var fates: [WriteID: Fate] = [:]
  /// Why something could not be made durable after closing; storage may take commits again since.
  var problemWhileClosing: StorageError?

  /// Makes a shell around a replica that was given no input yet.
  package init(_ replica: Replica) {
    self.replica = replica
  }

  // MARK: Inputs

  /// Takes in one input. After closing only `flush` is taken. While storage fails, the stores that
  /// are opened and the clock's status are kept for the next replica; all else is refused. A replica
  /// whose first commit is tried gets them at once, too.
  ///
  /// - Parameters:
  ///   - input: the input.
  ///   - gathers: whether a write waits up to ``gatheringMilliseconds`` for others, unless something
  ///     else wants a commit before.
  ///   - now: the time.
  /// - Returns: The effects that are carried out now, if the replica has it.
  package mutating func take(
    _ input: Input, gathers: Bool = false, at now: Instant
  ) -> Taken {
    if case .flush = input { gathersUntil = nil } else if isClosed { return .refused(.closed) }
    if let problem = health.problem {
      guard Self.isKept(input) else { return .refused(.storage(problem)) }
      // While the first commit of a new replica is tried, that replica may be the one that stays.
      guard case .probing = health else {
        remember(input)
        return .kept
      }
    }
    let beginsToGather = gathers && gathersUntil == nil && !replica.needsFlush
    let effects = absorb(replica.handle(input, at: now))
    switch input {
    case .open(let store, _):
      let isRefused = effects.contains {
        if case .refusedStore(store, _) = $0 { true } else { false }
      }
      if !isRefused { remember(input) }
    case .clockStatus: remember(input)
    case .write, .adopt:
      if beginsToGather {
        gathersUntil = now.monotonicMilliseconds + Self.gatheringMilliseconds
      } else if !gathers {
        gathersUntil = nil
      }
    default: break
    }
    return .handled(effects)
  }

  /// Whether each new replica gets an input again.
  private static func isKept(_ input: Input) -> Bool {
    switch input {
    case .open, .clockStatus: true
    default: false
    }
  }

  /// Remembers an input that each new replica gets again.
  private mutating func remember(_ input: Input) {
    switch input {
    case .open(let store, let policy): opened[store] = policy
    case .clockStatus(let isSynchronised, let hasHardware):
      clockStatus = (isSynchronised, hasHardware)
    default: break
    }
  }

  /// Puts those effects that wait for a commit, or for those before them, into the outbox.
  ///
  /// - Returns: The others.
  mutating func absorb(_ effects: [Effect]) -> [Effect] {
    var now: [Effect] = []
    for effect in effects {
      switch effect {
      case .view, .report, .accepted, .refused, .refusedStore, .refusedMembership:
        now.append(effect)
      case .wake(let time): tickAt = time
      default:
        outboxBytes += effect.byteCount
        outbox.append(effect)
      }
    }
    return now
  }

  // MARK: Time

  /// When ``wake(at:)`` has something to do, or failing storage is to be tried again; nil: never.
  package var wakesAtMilliseconds: UInt64? {
    switch health {
    case .sound: [tickAt, gathersUntil].compactMap(\.self).min()
    case .failed(_, let attempts, let retryAt): isBusy || isClosed && attempts > 0 ? nil : retryAt
    case .probing: nil
    }
  }

  /// Does the work that is due: ends gathering, and gives the replica its tick.
  ///
  /// - Returns: Effects that are carried out now.
  package mutating func wake(at now: Instant) -> [Effect] {
    guard health.problem == nil else { return [] }
    if let end = gathersUntil, end <= now.monotonicMilliseconds { gathersUntil = nil }
    guard let tick = tickAt, tick <= now.monotonicMilliseconds else { return [] }
    tickAt = nil
    guard case .handled(let effects) = take(.tick, at: now) else { return [] }
    return effects
  }

  /// Lets no write wait for others any more.
  package mutating func endGathering() { gathersUntil = nil }

  // MARK: Writes that are awaited

  /// Has the fate of a write kept until it is asked for. Called in the step in which the write was
  /// accepted.
  package mutating func expect(_ write: WriteID) { fates[write] = .open }

  /// Whether an expected write is neither durable nor lost yet.
  package func isOpen(_ write: WriteID) -> Bool {
    if case .open = fates[write] { true } else { false }
  }

  /// The fate of an expected write, once; nil while it is open.
  package mutating func takeFate(of write: WriteID) -> Result<Void, Unavailable>? {
    guard case .settled(let result) = fates[write] else { return nil }
    fates[write] = nil
    return result
  }

  /// Queues a write that writes nothing: it is settled after all inputs that were taken before.
  package mutating func mark(_ write: WriteID) -> Marked {
    if let problem = health.problem { return .refused(problem) }
    gathersUntil = nil
    guard isBusy || hasWork else { return .nothingWaits }
    outbox.append(.durable(write))
    expect(write)
    return .queued
  }

  // MARK: Closing

  /// Takes no more inputs, except `flush`. Inputs that were taken are still handed out as work.
  package mutating func close() {
    isClosed = true
    gathersUntil = nil
  }

  /// Ends a closed shell: writes that are still open never become durable.
  ///
  /// - Returns: These writes, and why something taken before is not durable.
  package mutating func end() -> (settled: [WriteID], problem: StorageError?) {
    (settleAll(.closed), problemWhileClosing ?? health.problem)
  }
}
