internal import Glibc
internal import KithCore
internal import NIOCore

extension AttachedStore {
  /// Starts the thread that reads what the node says.
  func startReceiving(_ stream: ControlStream) {
    BlockingThread.start { self.receive(stream) }
  }

  private func receive(_ stream: ControlStream) {
    var stream = stream
    var gathered: [NodeChange] = []
    var goesOn = false
    do throws(KithError) {
      repeat {
        while let line = try stream.nextLine() {
          try take(line, &gathered, &goesOn)
        }
      } while waitAndReceive(&stream)
    } catch {
      // A node that breaks the protocol is left, as one that is gone.
    }
    finish()
  }

  // MARK: Lines

  private func take(
    _ line: ByteBuffer, _ gathered: inout [NodeChange], _ goesOn: inout Bool
  ) throws(KithError) {
    guard let response = ControlJSON.decode(ControlResponse.self, line) else {
      throw .malformedControl
    }
    guard response.id == Self.attachID else {
      try answer(response.id, error: response.error?.error)
      return
    }
    guard let told = response.change else { throw .malformedControl }
    let change = try NodeChange(told)
    if goesOn, !gathered.isEmpty {
      gathered[gathered.count - 1].append(change)
    } else {
      gathered.append(change)
    }
    goesOn = told.goesOn == true
    guard response.hasMore != true else { return }
    let later = state.withLock { state -> [() -> Void] in
      let changes = state.shown.take(gathered)
      return changes.isEmpty ? [] : view.apply(changes)
    }
    gathered = []
    for run in later { run() }
  }

  private func answer(_ id: UInt64, error: KithError?) throws(KithError) {
    var later: [() -> Void] = []
    let write = state.withLock { state -> PendingWrite? in
      guard let (write, changes) = state.shown.answer(id, error: error) else { return nil }
      if !changes.isEmpty { later = view.apply(changes) }
      let answered = state.shown.answered
      for (number, flush) in state.flushes where !flush.isDone {
        var flush = flush
        if let error, !error.isRefusal, answered <= flush.target { flush.failure = error }
        if answered >= flush.target {
          flush.isDone = true
          flush.semaphore.signal()
        }
        state.flushes[number] = flush
      }
      later += state.roomWaiters.map(\.resume)
      state.roomWaiters = []
      return write
    }
    guard let write else { throw .malformedControl }
    for run in later { run() }
    write.settle(error.map { .failure($0) } ?? .success(()))
  }

  // MARK: The socket

  /// Waits until something has come, and sends what is left meanwhile; false at the end.
  private func waitAndReceive(_ stream: inout ControlStream) -> Bool {
    while true {
      let isSending = state.withLock { $0.unsent.readableBytes > 0 && !sendUnsent(&$0) }
      var waited = [
        pollfd(
          fd: descriptor, events: Int16(isSending ? POLLIN | POLLOUT : POLLIN), revents: 0),
        pollfd(fd: wakeup.read, events: Int16(POLLIN), revents: 0),
      ]
      let timeout = Int32(AttachedLimits.answer / .milliseconds(1))
      guard poll(&waited, 2, timeout) >= 0 || errno == EINTR else { return false }
      if waited[1].revents != 0 {
        var bytes = [UInt8](repeating: 0, count: 64)
        _ = read(wakeup.read, &bytes, bytes.count)
      }
      tellWhoWaitedTooLong()
      guard waited[0].revents & Int16(POLLIN | POLLHUP | POLLERR) != 0 else { continue }
      switch stream.receive() {
      case .bytes: return true
      case .nothing: continue
      case .end: return false
      }
    }
  }

  /// Tells those who wait that the node has not answered in time.
  func tellWhoWaitedTooLong(at now: SuspendingClock.Instant = .now) {
    let since = now - AttachedLimits.answer
    let (waiters, room) = state.withLock { state in
      let late = state.roomWaiters.filter { $0.since < since }
      if !late.isEmpty { state.roomWaiters.removeAll { $0.since < since } }
      return (state.shown.takeWaiters(since: since), late)
    }
    for waiter in waiters { waiter.resume(returning: .settled(.failure(notAnswered))) }
    for waiter in room { waiter.resume() }
  }

  /// The connection has ended: nothing is sent any more, and who flushes is told so, for that would
  /// wait for what comes next. Who waits for a durable write goes on, until somebody takes or closes.
  private func finish() {
    let (later, isClosing) = state.withLock { state -> ([@Sendable () -> Void], Bool) in
      state.ending = Self.closed
      state.unsent = ByteBuffer()
      for (number, var flush) in state.flushes where !flush.isDone {
        flush.failure = flush.failure ?? Self.closed
        flush.isDone = true
        flush.semaphore.signal()
        state.flushes[number] = flush
      }
      defer { state.roomWaiters = [] }
      // Under the lock, under which they are used.
      for descriptor in [descriptor, wakeup.read, wakeup.write] { Glibc.close(descriptor) }
      return (state.roomWaiters.map(\.resume), state.isClosing)
    }
    for run in later { run() }
    joined.signal()
    if !isClosing { onEnd(self) }
  }
}
