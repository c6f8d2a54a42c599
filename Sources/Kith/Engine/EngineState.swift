internal import Dispatch
internal import KithCore

struct EngineState {
  var shell: Shell
  var views: [StoreIdentifier: StoreView] = [:]
  var waiters: [WriteID: WriteWaiter] = [:]
  /// Whether the writer's thread runs.
  var isRunning = false
  /// The bytes in the outbox by session.
  var queuedBytes: [SessionID: Int] = [:]
  var pauses: [SessionID: SessionPause] = [:]
  var shares = SessionShares()
  /// Whether ``Engine/close()`` waits for the current drainer.
  var isDrainAwaited = false
  var lastWrite: UInt64 = 0
  /// The number of durable writes in the last round that settled any.
  var lastBatch = 0
  var sleepsUntilMilliseconds: UInt64 = 0
  var link: (any SessionLink)?
  let pairings = PairingSessions()

  init(replica: Replica) {
    shell = Shell(replica)
  }

  var problem: KithError? { shell.health.problem.map(KithError.init) }

  func link(of session: SessionID) -> (any SessionLink)? { session.isPairing ? pairings : link }

  mutating func nextWrite() -> WriteID {
    lastWrite += 1
    return WriteID(rawValue: lastWrite)
  }

  /// Hands an input to the shell. An input kept for the next replica has no effects yet.
  mutating func take(
    _ input: Input, gathers: Bool = false, at now: Instant
  ) -> Result<[Effect], KithError> {
    switch shell.take(input, gathers: gathers, at: now) {
    case .handled(let effects): .success(effects)
    case .kept: .success([])
    case .refused(let reason): .failure(KithError(reason))
    }
  }

  /// Applies the changes that programs see. Returns closures to run unlocked.
  func show(
    _ effects: [Effect], origin: WriteOrigin = .owner,
    reporting report: @escaping (Report) -> Void
  ) -> [() -> Void] {
    var changes: [StoreIdentifier: [ViewChange]] = [:]
    var later: [() -> Void] = []
    for effect in effects {
      switch effect {
      case .view(let change): changes[change.store, default: []].append(change)
      // Later, because a program's log handler may call the node.
      case .report(let text): later.append { report(text) }
      default: break
      }
    }
    for (store, changes) in changes { later += views[store]?.apply(changes, origin: origin) ?? [] }
    return later
  }

  /// Returns closures that wake callers, to run unlocked.
  mutating func tell(_ settled: [WriteID]) -> [() -> Void] {
    var later: [() -> Void] = []
    for write in settled {
      switch waiters.removeValue(forKey: write) {
      // The caller asks before it waits.
      case nil: break
      case .blocked(let semaphore): later.append { semaphore.signal() }
      case .suspended(let continuation):
        guard let fate = fate(of: write) else { break }
        later.append { continuation.resume(returning: fate) }
      }
    }
    return later
  }

  /// Takes a write's fate; nil while it is open.
  mutating func fate(of write: WriteID) -> Result<Void, KithError>? {
    shell.takeFate(of: write)?.mapError(KithError.init)
  }
}

enum WriteWaiter {
  case suspended(CheckedContinuation<Result<Void, KithError>, Never>)
  /// Asks for the fate once it is woken.
  case blocked(DispatchSemaphore)
}
