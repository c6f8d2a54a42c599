internal import KithCore

/// Whether storage takes commits.
enum StorageHealth {
  /// It does.
  case sound
  /// It did not; tried again at a reading of the monotonic clock.
  case failed(KithError, attempts: Int, retryAtMilliseconds: UInt64)

  /// Why it does not.
  var problem: KithError? {
    if case .failed(let error, _, _) = self { error } else { nil }
  }
}

/// What an engine's lock protects.
struct EngineState {
  var replica: Replica
  var views: [StoreIdentifier: StoreView] = [:]
  var policies: [StoreIdentifier: Policy] = [:]
  /// Effects that wait for their turn, in order.
  var outbox: [Effect] = []
  /// Bytes of messages and change sets that wait.
  var outboxBytes = 0
  /// Whether writes wait for `Input.flush`.
  var hasWrites = false
  /// Until when writes that gather wait for others; nil: none waits.
  var gathersUntilMilliseconds: UInt64?
  /// Whether somebody commits and sends now: only one does.
  var isDraining = false
  /// Whether the writer's thread is there.
  var isRunning = false
  /// Bytes in the outbox that each session's messages have brought there.
  var queuedBytes: [SessionID: Int] = [:]
  /// Sessions that are not read for now.
  var pauses: [SessionID: SessionPause] = [:]
  /// How long sessions have held the lock.
  var shares = SessionShares()
  var isClosed = false
  /// Whether ``Engine/close()`` waits for whoever drains.
  var isDrainAwaited = false
  /// Why something could not be made durable any more; storage may take commits again since.
  var failureWhileClosing: KithError?
  var isClockSynchronised: Bool?
  var waiters = DurableWaiters()
  var lastWrite: UInt64 = 0
  /// How many durable writes the last commit settled.
  var lastBatch = 0
  var health = StorageHealth.sound
  var sessions: Set<SessionID> = []
  /// When the core asked for a tick.
  var tickAtMilliseconds: UInt64?
  /// Until when the writer's thread sleeps.
  var sleepsUntilMilliseconds: UInt64 = 0
  var link: (any SessionLink)?
  /// The sessions that pairings became.
  let pairings = PairingSessions()

  init(replica: Replica) {
    self.replica = replica
  }

  /// What a session is reached by.
  func link(of session: SessionID) -> (any SessionLink)? { session.isPairing ? pairings : link }

  /// Whether there is something to commit or to send, and storage that takes it.
  var hasWork: Bool { health.problem == nil && (needsFlush || !outbox.isEmpty) }

  /// Whether `Input.flush` has something to do now. Writes that gather can wait.
  var needsFlush: Bool { hasWrites || gathersUntilMilliseconds == nil && replica.needsFlush }

  /// Lets no write wait for others any more.
  mutating func endGathering() {
    if gathersUntilMilliseconds.take() != nil { hasWrites = true }
  }

  /// Sorts effects: what programs see changes at once, the rest waits for its turn in the outbox.
  /// Returns what to run once the lock is free. The origin is who wrote, where the effects are
  /// those of a write.
  mutating func absorb(
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
      case .wake(let time): tickAtMilliseconds = time
      case .accepted, .refused, .refusedStore, .refusedMembership: break
      default:
        outboxBytes += effect.byteCount
        outbox.append(effect)
      }
    }
    for (store, changes) in changes { later += views[store]?.apply(changes, origin: origin) ?? [] }
    return later
  }
}

extension Effect {
  /// The bytes that an effect holds in memory while it waits.
  var byteCount: Int {
    switch self {
    case .send(_, let bytes): bytes.count
    case .sendStored(_, let message): message.byteCount
    case .persist(let mutations):
      mutations.reduce(0) { sum, mutation in
        switch mutation {
        case .putEntry(_, _, _, let box): sum + box.count
        case .putHeader(_, _, let header, let signature): sum + header.count + signature.count
        case .putDraft(_, _, let bytes), .putRefusal(_, _, let bytes), .putRecord(_, let bytes):
          sum + bytes.count
        default: sum
        }
      }
    default: 0
    }
  }
}
