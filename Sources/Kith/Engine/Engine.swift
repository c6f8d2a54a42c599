internal import CLinux
internal import Dispatch
internal import KithCore
internal import KithCrypto
internal import Logging
internal import Synchronization

/// Drives the core's `Shell` with threads, a disk and a network. One lock protects the shell and
/// the programs' views; one thread at a time does the shell's work.
///
/// While the node runs, that is its writer's thread (``runWriter()``), so event loops and programs
/// never wait for a disk. Only a lone durable write is carried out on its caller's thread, which saves
/// two thread switches. While the node does not run, the writing thread does the work.
final class Engine: Sendable {
  /// If a session adds to the outbox and it then has more bytes, no session is read until the writer
  /// takes the outbox.
  static let pauseBytes = 16 << 20
  /// If the effects that all sessions together added to the outbox have more bytes, no session is read
  /// either: carrying them out may delay a program's write. They count together, because a member can
  /// have any number of devices.
  static let sessionPauseBytes = 256 << 10

  let account: AccountID
  let keys: DeviceKeys
  let storage: any ReplicaStorage
  let clock: @Sendable () -> Instant
  let logger: Logger
  let state: FairLock<EngineState>
  let wakeup = DispatchSemaphore(value: 0)
  /// Signalled when the thread that ``close()`` waits for has done its work.
  let workEnded = DispatchSemaphore(value: 0)
  /// Raised when peers, devices, problems or pending work have changed.
  let progress = Signal()
  /// Raised if the database is damaged so that loading it anew does not help: it must be opened anew,
  /// which repairs it.
  let damage = Signal()
  let metrics = Metrics()
  let rateLimit = Mutex(LogRateLimit<LogLine.Subject>())

  init(
    account: AccountID, keys: DeviceKeys, process: ProcessID, storage: any ReplicaStorage,
    logger: Logger, boot: BootID? = nil,
    clock: @escaping @Sendable () -> Instant = SystemClock.now
  ) throws(KithError) {
    self.account = account
    self.keys = keys
    self.storage = storage
    self.clock = clock
    self.logger = logger
    let replica = try KithError.mapping(Engine.replica(account, keys, process, storage))
    state = FairLock(EngineState(replica: replica))
    input(.start(isCopy: storage.isCopy, boot: boot))
  }

  static func replica(
    _ account: AccountID, _ keys: DeviceKeys, _ process: ProcessID, _ storage: any ReplicaStorage
  ) throws(StorageError) -> Replica {
    let outline = try storage.outline()
    do throws(ReplicaError) {
      return try Replica(
        account: account, keys: keys, outline: outline, process: process, entropy: SystemRandom(),
        concurrently: BlockingThread.perform
      ) { (keys) throws(StorageError) in try storage.rows(keys) }
    } catch {
      if case .storage(let error) = error { throw error }
      throw StorageError(
        code: .damaged, path: "",
        message: "The stored data makes no replica: \(error). Restore the directory from a backup, "
          + "or recover the account on a new device.")
    }
  }

  static func giveMemoryBack() { kith_give_memory_back() }

  /// While storage fails, and after closing, inputs are dropped, and sessions are dialled again
  /// later.
  func input(_ input: Input) {
    perform(worksHere: false, cause: input.cause) { state, effects in
      if case .disconnected(let session) = input {
        state.pauses[session] = nil
        state.records[session] = nil
      }
      effects = (try? state.handle(input, at: clock())) ?? []
    }
  }

  /// Runs the core under the lock, shows its effects, also if the body throws, and ensures that a
  /// thread does the work. A session's work is charged to its device.
  func perform<Value: Sendable, Failure: Error>(
    worksHere: Bool, origin: WriteOrigin = .owner,
    cause: (session: SessionID, recordCost: Int)? = nil,
    _ body: (_ state: inout EngineState, _ effects: inout [Effect]) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    var later: [() -> Void] = []
    let (result, worker) = state.withLock { state -> (Result<Value, Failure>, Worker) in
      let before = cause.map { state.beginWork(of: $0.session, recordCost: $0.recordCost) }
      var effects: [Effect] = []
      let result = Result { () throws(Failure) in try body(&state, &effects) }
      later = state.show(effects, origin: origin, reporting: report)
      if let before, let slowed = endWork(before, &state) { later.append(slowed) }
      return (result, self.worker(of: &state, worksHere: worksHere))
    }
    for run in later { run() }
    switch worker {
    case .nobody: break
    case .writer: wakeup.signal()
    case .here: work()
    }
    return try result.get()
  }

  private enum Worker {
    case nobody
    case writer
    case here
  }

  private func worker(of state: inout EngineState, worksHere: Bool) -> Worker {
    let hasWork = !worksHere && !state.shell.isBusy && state.shell.hasWork
    guard state.isRunning else { return hasWork && !state.shell.isClosed ? .here : .nobody }
    let isEarlier = state.wakesAtMilliseconds < state.sleepsUntilMilliseconds
    return isEarlier || hasWork ? .writer : .nobody
  }

  func read<Result: Sendable>(_ body: (inout Replica) -> Result) -> Result {
    state.withLock { body(&$0.shell.replica) }
  }
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
  /// Rate limit of each session's membership records, in bytes.
  var records: [SessionID: TokenBucket] = [:]
  var shares = SessionShares()
  /// Whether ``Engine/close()`` waits for the thread that does the work.
  var isWorkEndAwaited = false
  var lastWrite: UInt64 = 0
  /// The number of durable writes in the last round that settled any.
  var lastSettledCount = 0
  var sleepsUntilMilliseconds: UInt64 = 0
  var transports = SessionTransports()
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
  mutating func handle(
    _ input: Input, coalesces: Bool = false, at now: Instant
  ) throws(KithError) -> [Effect] {
    switch shell.handle(input, coalesces: coalesces, at: now) {
    case .handled(let effects): return effects
    case .deferred: return []
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
      case .report(let event): later.append { report(event) }
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
      // A caller that does not wait yet asks for the outcome before it waits.
      guard let tell = waiters.removeValue(forKey: write), let outcome = outcome(of: write) else {
        continue
      }
      later.append { tell(outcome) }
    }
    return later
  }

  /// Removes and returns a write's outcome; nil while the write is not settled.
  mutating func outcome(of write: WriteID) -> Result<Void, KithError>? {
    shell.takeResult(of: write)?.mapError(KithError.init)
  }
}

extension Engine {
  /// The view of a store, opened if needed. With `isLooking` it does not count as opened by a
  /// program, and less of it is kept.
  func open(
    _ store: StoreIdentifier, policy: Policy, isLooking: Bool = false
  ) throws(KithError) -> StoreView {
    try perform(worksHere: false) { (state, effects) throws(KithError) in
      if state.shell.isClosed { throw .closedNode }
      let limits = state.shell.openStores[store]
      let view = state.views[store]
      if view != nil, let limits, limits != policy {
        throw KithError(
          .invalidPolicy, "The store \(store) is open with other limits. Use the same everywhere.")
      }
      if !isLooking, view == nil || limits == nil {
        effects = (try? state.handle(.open(store, policy), at: clock())) ?? []
      }
      for case .refusedStore(store, let error) in effects where view == nil {
        throw KithError(error, store: store)
      }
      if let view { return view }
      let values = state.shell.replica.view(of: store).compactMapValues { try? $0.decoded() }
      let made = StoreView(identifier: store, device: keys.id, values: values)
      state.views[store] = made
      effects.removeAll { if case .view = $0 { true } else { false } }
      return made
    }
  }

  func open(
    _ view: StoreView, policy: Policy, reason: ChangeReason, superseded: Set<Key>
  ) throws(KithError) {
    let store = view.identifier
    var later: [() -> Void] = []
    try perform(worksHere: false) { (state, effects) throws(KithError) in
      effects = try state.handle(.open(store, policy), at: clock())
      for case .refusedStore(store, let error) in effects { throw KithError(error, store: store) }
      state.views[store] = view
      later = view.show(
        state.shell.replica.view(of: store), of: keys.id, reason: reason, superseded: superseded)
      effects.removeAll { if case .view = $0 { true } else { false } }
    }
    for run in later { run() }
  }

  func release(_ view: StoreView) {
    state.withLock { state in
      guard state.views[view.identifier] === view else { return }
      state.views[view.identifier] = nil
    }
  }

  /// Accepts nothing more, and makes all writes durable; waits if another thread does the work.
  func close() throws(KithError) {
    state.withLock { $0.shell.close() }
    while true {
      work()
      let isWorkedElsewhere = state.withLock { state in
        state.isWorkEndAwaited = state.shell.isBusy
        return state.shell.isBusy
      }
      guard isWorkedElsewhere else { break }
      workEnded.wait()
    }
    let (views, later, problem) = state.withLock { state in
      let (settled, problem) = state.shell.end()
      return (Array(state.views.values), state.tell(settled), problem)
    }
    for run in later { run() }
    for view in views { view.finish() }
    progress.finish()
    if let problem { throw KithError(problem) }
  }
}
