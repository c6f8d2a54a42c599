internal import Dispatch
internal import Glibc
internal import KithCore
internal import NIOCore
internal import Synchronization

/// A store of a node that another program of this host runs, over that node's control socket; see
/// ``ControlRequest``, `attach`.
///
/// It shows what the node shows with this program's unanswered writes over it (``AttachedState``).
/// Writes are checked against the limits here, show at once and are sent without waiting; what the
/// node refuses all the same is undone and told as a change with its keys in ``Change/superseded``.
/// One thread reads, and sends what the socket did not take at once; it ends in ``close()``.
final class AttachedStore: StoreBacking {
  /// What came of waiting for a turn to write, or for a write.
  enum Turn: Sendable {
    case settled(Result<Void, KithError>)
    case mayHaveRoom
  }

  struct State {
    var shown: AttachedState
    /// What the socket did not take yet.
    var unsent = ByteBuffer()
    /// Why nothing is sent any more.
    var ending: KithError?
    /// Whether ``AttachedStore/stop()`` or ``AttachedStore/close()`` was called: no write is taken
    /// any more.
    var isClosing = false
    /// Whether ``AttachedStore/takePending()`` gave away what was not answered.
    var isTaken = false
    /// Who waits until something was answered.
    var roomWaiters: [Waiter] = []
    var flushes: [UInt64: Flush] = [:]
    var lastNumber: UInt64 = 1
  }

  /// Who waits until something was answered, and since when.
  struct Waiter {
    var since: SuspendingClock.Instant
    var resume: @Sendable () -> Void
  }

  /// A flush that waits for answers.
  struct Flush {
    /// How many writes must be answered.
    var target: UInt64
    var failure: KithError?
    var isDone = false
    let semaphore = DispatchSemaphore(value: 0)
  }

  /// What programs read.
  let view: StoreView
  let directory: String
  let socketPath: String
  let identifier: StoreIdentifier
  /// The id of the request that attached.
  static let attachID: UInt64 = 1
  let descriptor: Int32
  /// Written to wake the thread; the other end is read by it.
  let wakeup: (read: Int32, write: Int32)
  let state: Mutex<State>
  let onEnd: @Sendable (AttachedStore) -> Void
  /// Signalled once the thread touches nothing any more.
  let joined = DispatchSemaphore(value: 0)

  init(
    directory: String, socketPath: String, view: StoreView, shown: AttachedState,
    descriptor: Int32, wakeup: (read: Int32, write: Int32),
    onEnd: @escaping @Sendable (AttachedStore) -> Void
  ) {
    self.directory = directory
    self.socketPath = socketPath
    self.view = view
    identifier = view.identifier
    self.descriptor = descriptor
    self.wakeup = wakeup
    self.onEnd = onEnd
    state = Mutex(State(shown: shown))
  }

  // MARK: Writing

  /// Makes writes visible at once, and sends them at once: the node gathers nothing for others.
  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], gathers: Bool = false
  ) throws(KithError) {
    let line = try encode(operations)
    let start = SuspendingClock.now
    while true {
      let semaphore = DispatchSemaphore(value: 0)
      let isWritten = try submit(
        PendingWrite(operations: operations, waiter: nil), line, at: start,
        ifFull: { semaphore.signal() })
      if isWritten { return }
      let remaining = start.advanced(by: AttachedLimits.answer) - SuspendingClock.now
      guard remaining > .zero, semaphore.wait(timeout: .now() + remaining.dispatch) == .success
      else { throw notAnswered }
    }
  }

  /// Makes writes visible at once, and returns when the node has made them durable.
  ///
  /// Where the connection ends before, it goes on waiting: for whoever takes over with
  /// ``takePending()``, or for ``close()``, with which it fails with `closed`. With `timedOut` the
  /// write stays, and may become durable yet.
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation]
  ) async throws(KithError) {
    let line = try encode(operations)
    let start = SuspendingClock.now
    while true {
      let turn = await withCheckedContinuation { (continuation: PendingWrite.Waiter) in
        let result = Result { () throws(KithError) in
          try submit(
            PendingWrite(operations: operations, waiter: continuation), line, at: start,
            ifFull: { continuation.resume(returning: .mayHaveRoom) })
        }
        if case .failure(let error) = result {
          continuation.resume(returning: .settled(.failure(error)))
        }
      }
      if case .settled(let result) = turn { return try result.get() }
      guard SuspendingClock.now < start.advanced(by: AttachedLimits.answer) else {
        throw notAnswered
      }
    }
  }

  /// Waits until the node has made durable all that was written before.
  ///
  /// - Throws: ``KithError`` with a storage code where the node could not, `closed` where it ended
  ///   before, or `timedOut`.
  func flush() throws(KithError) {
    let waiting = state.withLock { state -> Result<(UInt64, DispatchSemaphore)?, KithError> in
      guard state.shown.answered < state.shown.written else { return .success(nil) }
      if let ending = state.ending { return .failure(ending) }
      state.lastNumber += 1
      let flush = Flush(target: state.shown.written)
      state.flushes[state.lastNumber] = flush
      return .success((state.lastNumber, flush.semaphore))
    }
    guard let (number, semaphore) = try waiting.get() else { return }
    _ = semaphore.wait(timeout: .now() + AttachedLimits.answer.dispatch)
    let flush = state.withLock { $0.flushes.removeValue(forKey: number) }
    if let failure = flush?.failure { throw failure }
    guard flush?.isDone == true else { throw notAnswered }
  }

  /// Shows a write and sends it; false where it must wait, and `ifFull` is called later.
  private func submit(
    _ write: PendingWrite, _ line: (id: UInt64, bytes: ByteBuffer),
    at start: SuspendingClock.Instant, ifFull: @escaping @Sendable () -> Void
  ) throws(KithError) -> Bool {
    var later: [() -> Void] = []
    let result = state.withLock { state -> Result<Bool, KithError> in
      if state.isClosing || state.isTaken { return .failure(Self.closed) }
      let bytes = line.bytes.readableBytes
      let total = state.shown.unansweredBytes + bytes
      guard total <= AttachedLimits.unansweredBytes || state.shown.unansweredBytes == 0 else {
        // Nothing is answered any more.
        if let ending = state.ending { return .failure(ending) }
        state.roomWaiters.append(Waiter(since: start, resume: ifFull))
        return .success(false)
      }
      do throws(KithError) {
        let change = try state.shown.write(write, id: line.id, bytes: bytes, at: start)
        if !change.changes.isEmpty { later = view.apply([change]) }
      } catch {
        return .failure(error)
      }
      if state.ending == nil { send(line.bytes, &state) }
      return .success(true)
    }
    for run in later { run() }
    return try result.get()
  }

  /// Sends without waiting; what the socket does not take is the thread's.
  private func send(_ line: ByteBuffer, _ state: inout State) {
    let isFirst = state.unsent.readableBytes == 0
    state.unsent.writeImmutableBuffer(line)
    guard isFirst else { return }
    if !sendUnsent(&state) { wake() }
  }

  /// Sends what the socket takes; whether nothing is left. A connection that broke is noticed by who
  /// reads.
  func sendUnsent(_ state: inout State) -> Bool {
    guard let isSent = try? ControlStream.send(&state.unsent, to: descriptor) else {
      state.unsent.clear()
      shutdown(descriptor, Int32(SHUT_RDWR))
      return true
    }
    return isSent
  }

  private func wake() {
    var byte: UInt8 = 0
    _ = Glibc.write(wakeup.write, &byte, 1)
  }

  /// The line of a commit, under an id of its own.
  private func encode(
    _ operations: [KithCore.Operation]
  ) throws(KithError) -> (id: UInt64, bytes: ByteBuffer) {
    let id = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    return (id, try Self.line(operations, id: id))
  }

  /// The line of a commit.
  static func line(
    _ operations: [KithCore.Operation], id: UInt64
  ) throws(KithError) -> ByteBuffer {
    var request = ControlRequest(id: id)
    request.operation = .commit
    request.writes = operations.map(ControlEntry.init)
    let line = try ControlStream.encode(request)
    guard line.readableBytes <= ControlLimits.lineBytes else {
      throw KithError(
        .valueTooLarge,
        "The transaction takes \(line.readableBytes) bytes on its way to the node; at most "
          + "\(ControlLimits.lineBytes) are possible. Split it.",
        actual: line.readableBytes, limit: ControlLimits.lineBytes)
    }
    return line
  }

  // MARK: The end

  /// Whether the connection has ended.
  var hasEnded: Bool { state.withLock { $0.ending != nil } }

  /// The writes that were not answered, in order.
  var pending: [[KithCore.Operation]] {
    state.withLock { $0.shown.pending.map(\.operations) }
  }

  /// Gives away the writes that were not answered, in order, once the connection has ended: to
  /// write them again to what comes next, and to settle each. Until then writes are still taken and
  /// shown, as pending ones, so that none falls between; afterwards they fail with `closed`.
  func takePending() -> [PendingWrite] {
    state.withLock { state in
      guard state.ending != nil else { return [] }
      state.isTaken = true
      return state.shown.takePending()
    }
  }

  /// Takes no writes any more, waits until those there are were answered, at most
  /// ``AttachedLimits/answer``, and ends the connection. What was not answered is to be taken with
  /// ``takePending()``.
  func stop() {
    state.withLock { $0.isClosing = true }
    // What could not be flushed is pending.
    try? flush()
    end()
  }

  /// Ends the connection and waits for the thread. What was not answered stays in ``pending``, and
  /// who waits for it to be durable is told `closed`: flush first, or take it before. It may be
  /// called from `onEnd`, which is not called where this or ``stop()`` comes first.
  func close() {
    end()
    let waiters = state.withLock { $0.shown.takeWaiters(since: nil) }
    for waiter in waiters { waiter.resume(returning: .settled(.failure(Self.closed))) }
  }

  private func end() {
    state.withLock { state in
      state.isClosing = true
      if state.ending == nil { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
    joined.wait()
    joined.signal()
  }

  static let closed = KithError(
    .closed, "The program that had the directory open has ended. Open the store again.")

  /// The node has not answered in time.
  var notAnswered: KithError { ControlStream.timedOut(socketPath) }
}

extension Duration {
  /// The same for Dispatch.
  var dispatch: DispatchTimeInterval {
    .milliseconds(Int((self / .milliseconds(1)).rounded(.up)))
  }
}
