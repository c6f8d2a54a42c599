internal import CLinux
internal import Dispatch
internal import KithCore
internal import KithCrypto
internal import Logging
internal import Synchronization

/// Drives the core's `Shell` with threads, a disk and a network: one lock for the shell and for the
/// views that programs see, and one drainer at a time that does the shell's work.
///
/// While the node runs, a thread of its own drains (``runWriter()``), so that event loops and
/// programs never wait for a disk. A lone durable write drains on its caller's thread, which saves
/// two hops between threads. While the node does not run, the writing thread drains.
final class Engine: Sendable {
  /// Above this many bytes in the outbox each session whose messages add to it is not read, until a
  /// drainer has taken it.
  static let pauseBytes = 16 << 20
  /// So is a session above this many bytes of its own: they are in one commit with a program's write
  /// that comes after them, or in the one before it.
  static let sessionPauseBytes = 256 << 10

  let account: AccountID
  let keys: DeviceKeys
  let process: ProcessID
  let storage: any ReplicaStorage
  let clock: @Sendable () -> Instant
  let logger: Logger
  let state: TurnLock<EngineState>
  /// Wakes the writer's thread.
  let wakeup = DispatchSemaphore(value: 0)
  /// Signalled when a drainer has finished that ``close()`` waits for.
  let drained = DispatchSemaphore(value: 0)
  /// Raised when peers, devices, problems or pending work have changed.
  let progress = Signal()
  let meters = Meters()
  /// The last warnings about devices, with their times in milliseconds of the monotonic clock.
  let warned = Mutex<[String: UInt64]>([:])

  init(
    account: AccountID, keys: DeviceKeys, process: ProcessID, storage: any ReplicaStorage,
    logger: Logger, clock: @escaping @Sendable () -> Instant = SystemClock.now
  ) throws(KithError) {
    self.account = account
    self.keys = keys
    self.process = process
    self.storage = storage
    self.clock = clock
    self.logger = logger
    let replica: Replica
    do throws(StorageError) {
      replica = try Self.replica(account, keys, process, storage)
    } catch {
      throw KithError(error)
    }
    state = TurnLock(EngineState(replica: replica))
    Self.giveMemoryBack()
    input(.start(isCopy: storage.isCopy))
  }

  /// A replica of storage's contents.
  static func replica(
    _ account: AccountID, _ keys: DeviceKeys, _ process: ProcessID, _ storage: any ReplicaStorage
  ) throws(StorageError) -> Replica {
    let outline = try storage.outline()
    do throws(ReplicaError) {
      return try Replica(
        account: account, keys: keys, outline: outline, process: process, entropy: SystemRandom()
      ) { (store, reference) throws(StorageError) in try storage.changeSet(reference, in: store) }
    } catch {
      if case .storage(let error) = error { throw error }
      throw StorageError(
        code: .damaged, path: "",
        message: "What is stored makes no replica: \(error). Restore the directory from a backup, "
          + "or recover the account on a new device.")
    }
  }

  /// Gives memory that was needed for a moment only back to the system.
  static func giveMemoryBack() { kith_give_memory_back() }

  /// Hands an input to the core. Inputs that come while storage fails, or after closing, are
  /// dropped: sessions are made anew afterwards. Returns whether it was taken.
  @discardableResult
  func input(_ input: Input) -> Bool {
    perform(drainsHere: false, message: input.message) { state in
      if case .disconnected(let session) = input { state.forget(session) }
      guard case .success(let effects) = state.take(input, at: clock()) else { return (false, []) }
      return (true, effects)
    }
  }

  /// Runs the core under the lock, shows the changes, and makes sure that a thread drains. The cost
  /// of a session's message is counted for that session.
  @discardableResult
  func perform<Result: Sendable>(
    drainsHere: Bool, origin: WriteOrigin = .owner,
    message: (session: SessionID, hasRecords: Bool)? = nil,
    _ body: (inout EngineState) -> (Result, [Effect])
  ) -> Result {
    var later: [() -> Void] = []
    let (result, drainer) = state.withLock { state -> (Result, Drainer) in
      let before = message.map { state.beginTurn(of: $0.session, hasRecords: $0.hasRecords) }
      let (result, effects) = body(&state)
      later = state.show(effects, origin: origin, reporting: report)
      if let before, let slowed = endTurn(before, &state) { later.append(slowed) }
      return (result, self.drainer(of: &state, drainsHere: drainsHere))
    }
    for run in later { run() }
    switch drainer {
    case .nobody: break
    case .writer: wakeup.signal()
    case .here: drain()
    }
    return result
  }

  /// The thread that drains after an input.
  private enum Drainer {
    case nobody
    case writer
    case here
  }

  private func drainer(of state: inout EngineState, drainsHere: Bool) -> Drainer {
    let hasWork = !drainsHere && !state.shell.isBusy && state.shell.hasWork
    guard state.isRunning else { return hasWork && !state.shell.isClosed ? .here : .nobody }
    let wakes = [state.shell.wakesAtMilliseconds, state.nextResumption].compactMap(\.self)
    let sleepEnd = state.sleepsUntilMilliseconds
    let isEarlier = wakes.contains { $0 < sleepEnd }
    return isEarlier || hasWork ? .writer : .nobody
  }

  /// Reads from the replica under the lock.
  func read<Result: Sendable>(_ body: (inout Replica) -> Result) -> Result {
    state.withLock { body(&$0.shell.replica) }
  }
}
