internal import CLinux
internal import Dispatch
internal import KithCore
internal import KithCrypto
internal import Logging
internal import Synchronization

/// Drives the core's `Shell` with threads, a disk and a network. One lock protects the shell and
/// the programs' views; one drainer at a time does the shell's work.
///
/// While the node runs, its writer's thread drains (``runWriter()``), so event loops and programs
/// never wait for a disk. Only a lone durable write drains on its caller's thread, which saves two
/// thread switches. While the node does not run, the writing thread drains.
final class Engine: Sendable {
  /// If a session adds to an outbox of more bytes, no session is read until it is taken.
  static let pauseBytes = 16 << 20
  /// The same for the bytes that sessions added: carrying them out may delay a program's write. They
  /// count together, because a member can have any number of devices.
  static let sessionPauseBytes = 256 << 10

  let account: AccountID
  let keys: DeviceKeys
  let storage: any ReplicaStorage
  let clock: @Sendable () -> Instant
  let logger: Logger
  let state: FairLock<EngineState>
  let wakeup = DispatchSemaphore(value: 0)
  /// Signalled when the drainer that ``close()`` waits for has finished.
  let drained = DispatchSemaphore(value: 0)
  /// Raised when peers, devices, problems or pending work have changed.
  let progress = Signal()
  let metrics = Metrics()
  let rateLimit = Mutex(LogRateLimit<LogLine.Subject>())

  init(
    account: AccountID, keys: DeviceKeys, process: ProcessID, storage: any ReplicaStorage,
    logger: Logger, clock: @escaping @Sendable () -> Instant = SystemClock.now
  ) throws(KithError) {
    self.account = account
    self.keys = keys
    self.storage = storage
    self.clock = clock
    self.logger = logger
    let replica = try KithError.mapping(Engine.replica(account, keys, process, storage))
    state = FairLock(EngineState(replica: replica))
    Self.giveMemoryBack()
    input(.start(isCopy: storage.isCopy))
  }

  static func replica(
    _ account: AccountID, _ keys: DeviceKeys, _ process: ProcessID, _ storage: any ReplicaStorage
  ) throws(StorageError) -> Replica {
    let outline = try storage.outline()
    do throws(ReplicaError) {
      return try Replica(
        account: account, keys: keys, outline: outline, process: process, entropy: SystemRandom()
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
    perform(drainsHere: false, cause: input.cause) { state, effects in
      if case .disconnected(let session) = input { state.pauses[session] = nil }
      effects = (try? state.take(input, at: clock())) ?? []
    }
  }

  /// Runs the core under the lock, shows its effects, also if the body throws, and ensures that a
  /// thread drains. Work that a session caused is charged to its device.
  func perform<Value: Sendable, Failure: Error>(
    drainsHere: Bool, origin: WriteOrigin = .owner,
    cause: (session: SessionID, hasRecords: Bool)? = nil,
    _ body: (_ state: inout EngineState, _ effects: inout [Effect]) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    var later: [() -> Void] = []
    let (result, drainer) = state.withLock { state -> (Result<Value, Failure>, Drainer) in
      let before = cause.map { state.beginWork(of: $0.session, hasRecords: $0.hasRecords) }
      var effects: [Effect] = []
      let result = Result { () throws(Failure) in try body(&state, &effects) }
      later = state.show(effects, origin: origin, reporting: report)
      if let before, let slowed = endWork(before, &state) { later.append(slowed) }
      return (result, self.drainer(of: &state, drainsHere: drainsHere))
    }
    for run in later { run() }
    switch drainer {
    case .nobody: break
    case .writer: wakeup.signal()
    case .here: drain()
    }
    return try result.get()
  }

  private enum Drainer {
    case nobody
    case writer
    case here
  }

  private func drainer(of state: inout EngineState, drainsHere: Bool) -> Drainer {
    let hasWork = !drainsHere && !state.shell.isBusy && state.shell.hasWork
    guard state.isRunning else { return hasWork && !state.shell.isClosed ? .here : .nobody }
    let isEarlier = state.wakesAtMilliseconds < state.sleepsUntilMilliseconds
    return isEarlier || hasWork ? .writer : .nobody
  }

  func read<Result: Sendable>(_ body: (inout Replica) -> Result) -> Result {
    state.withLock { body(&$0.shell.replica) }
  }
}
