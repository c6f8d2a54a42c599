internal import KithCore

/// The ways to other devices.
struct SessionLinks {
  /// While the node runs.
  var node: (any SessionLink)?
  let pairings = PairingSessions()

  func link(to session: SessionID) -> (any SessionLink)? { session.isPairing ? pairings : node }
}

struct EngineState {
  var shell: Shell
  var views: [StoreIdentifier: StoreView] = [:]
  /// Called with the write's outcome.
  var waiters: [WriteID: @Sendable (Result<Void, KithError>) -> Void] = [:]
  /// Whether the writer's thread runs.
  var isRunning = false
  /// The weight of the effects in the outbox that sessions caused.
  var queuedBytes = 0
  var pauses: [SessionID: SessionPause] = [:]
  var shares = SessionShares()
  /// Whether ``Engine/close()`` waits for the current drainer.
  var isDrainAwaited = false
  var lastWrite: UInt64 = 0
  /// The number of durable writes in the last round that settled any.
  var lastBatch = 0
  var sleepsUntilMilliseconds: UInt64 = 0
  var links = SessionLinks()
  let carriers = CarrierDispatcher()

  init(replica: Replica) {
    shell = Shell(replica)
  }

  var problem: KithError? { shell.health.problem.map(KithError.init) }

  /// When the shell or a pause has to be seen to, on the monotonic clock; `.max`: never.
  var wakesAtMilliseconds: UInt64 {
    let ends = pauses.values.compactMap(\.untilMilliseconds)
    return min(shell.wakesAtMilliseconds ?? .max, ends.min() ?? .max)
  }

  mutating func nextWrite() -> WriteID {
    lastWrite += 1
    return WriteID(rawValue: lastWrite)
  }

  /// Hands an input to the shell. An input kept for the next replica has no effects yet.
  mutating func take(
    _ input: Input, coalesces: Bool = false, at now: Instant
  ) throws(KithError) -> [Effect] {
    switch shell.take(input, gathers: coalesces, at: now) {
    case .handled(let effects): return effects
    case .kept: return []
    case .refused(let reason): throw KithError(reason)
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
      // A caller that does not wait yet asks before it does.
      guard let tell = waiters.removeValue(forKey: write), let outcome = outcome(of: write) else {
        continue
      }
      later.append { tell(outcome) }
    }
    return later
  }

  /// Takes a write's outcome; nil while it is open.
  mutating func outcome(of write: WriteID) -> Result<Void, KithError>? {
    shell.takeFate(of: write)?.mapError(KithError.init)
  }
}
