internal import Dispatch
internal import KithCore

/// The state that an engine's lock protects.
struct EngineState {
  /// The replica, and everything about it that needs no thread.
  var shell: Shell
  var views: [StoreIdentifier: StoreView] = [:]
  /// Callers that wait for writes that the shell expects.
  var waiters: [WriteID: WriteWaiter] = [:]
  /// Whether the writer's thread is there.
  var isRunning = false
  /// Bytes in the outbox that each session's messages have brought there.
  var queuedBytes: [SessionID: Int] = [:]
  /// Sessions that are not read for now.
  var pauses: [SessionID: SessionPause] = [:]
  /// How long sessions have held the lock.
  var shares = SessionShares()
  /// Whether ``Engine/close()`` waits until the shell's work is given back.
  var isDrainAwaited = false
  var lastWrite: UInt64 = 0
  /// How many durable writes the last round settled that settled any.
  var lastBatch = 0
  /// Until when the writer's thread sleeps.
  var sleepsUntilMilliseconds: UInt64 = 0
  var link: (any SessionLink)?
  /// The sessions that pairings became.
  let pairings = PairingSessions()

  init(replica: Replica) {
    shell = Shell(replica)
  }

  /// Why storage takes no commits; nil: it does.
  var problem: KithError? { shell.health.problem.map(KithError.init) }

  /// The network access for a session.
  func link(of session: SessionID) -> (any SessionLink)? { session.isPairing ? pairings : link }

  mutating func nextWrite() -> WriteID {
    lastWrite += 1
    return WriteID(rawValue: lastWrite)
  }

  /// Hands an input to the shell. An input that is kept for the next replica has no effects yet.
  mutating func take(
    _ input: Input, gathers: Bool = false, at now: Instant
  ) -> Result<[Effect], KithError> {
    switch shell.take(input, gathers: gathers, at: now) {
    case .handled(let effects): .success(effects)
    case .kept: .success([])
    case .refused(let reason): .failure(KithError(reason))
    }
  }

  /// Applies the changes that programs see. Returns closures to run once the lock is free. `origin`
  /// is the writer, if the effects are those of a write.
  func show(
    _ effects: [Effect], origin: WriteOrigin = .owner,
    reporting report: @escaping (Report) -> Void
  ) -> [() -> Void] {
    var changes: [StoreIdentifier: [ViewChange]] = [:]
    var later: [() -> Void] = []
    for effect in effects {
      switch effect {
      case .view(let change): changes[change.store, default: []].append(change)
      // A program's log handler may ask the node something.
      case .report(let text): later.append { report(text) }
      default: break
      }
    }
    for (store, changes) in changes { later += views[store]?.apply(changes, origin: origin) ?? [] }
    return later
  }

  /// Returns closures that tell the callers whose writes are settled, to run once the lock is free.
  mutating func tell(_ settled: [WriteID]) -> [() -> Void] {
    var later: [() -> Void] = []
    for write in settled {
      switch waiters.removeValue(forKey: write) {
      // The caller has not begun to wait, and asks first.
      case nil: break
      case .blocked(let semaphore): later.append { semaphore.signal() }
      case .suspended(let continuation):
        guard let fate = fate(of: write) else { break }
        later.append { continuation.resume(returning: fate) }
      }
    }
    return later
  }

  /// The fate of a write, once; nil while it is open.
  mutating func fate(of write: WriteID) -> Result<Void, KithError>? {
    shell.takeFate(of: write)?.mapError(KithError.init)
  }
}

/// A caller that waits for the fate of a write.
enum WriteWaiter {
  case suspended(CheckedContinuation<Result<Void, KithError>, Never>)
  /// A thread, which asks for the fate once the semaphore is signalled.
  case blocked(DispatchSemaphore)
}
