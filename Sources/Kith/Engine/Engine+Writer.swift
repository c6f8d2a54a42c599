internal import Dispatch
internal import KithCore

extension Engine {
  /// The longest sleep of the writer, in milliseconds: how often the clock's status is read.
  static let longestSleepMilliseconds: UInt64 = 30_000

  /// Commits, sends and keeps the time until ``stopWriter()``, on a thread of its own: fsync
  /// blocks, and Swift's shared threads must not.
  func runWriter() async {
    await withCheckedContinuation { continuation in
      BlockingThread.start {
        self.writerLoop()
        continuation.resume()
      }
    }
  }

  /// Whether the writer's thread takes over; false where it did before.
  func beginRunning(link: any SessionLink) -> Bool {
    state.withLock { state in
      guard !state.isRunning, !state.isClosed else { return false }
      state.isRunning = true
      state.link = link
      return true
    }
  }

  /// Ends ``runWriter()`` once what waits is done.
  func stopWriter() {
    state.withLock { state in
      state.isRunning = false
      state.link = nil
      state.endGathering()
    }
    wakeup.signal()
  }

  private func writerLoop() {
    while true {
      updateClockStatus()
      let now = clock().monotonicMilliseconds
      let (wake, isRunning) = state.withLock { state -> (UInt64, Bool) in
        var wake = now + Self.longestSleepMilliseconds
        if let tick = state.tickAtMilliseconds { wake = min(wake, tick) }
        if let end = state.gathersUntilMilliseconds {
          if end <= now { state.endGathering() } else { wake = min(wake, end) }
        }
        if let resumption = state.nextResumption { wake = min(wake, resumption) }
        if case .failed(_, _, let time) = state.health { wake = min(wake, time) }
        if state.hasWork && !state.isDraining { wake = now }
        state.sleepsUntilMilliseconds = wake
        return (wake, state.isRunning)
      }
      guard isRunning else { break }
      if wake > now {
        _ = wakeup.wait(timeout: .now() + .milliseconds(Int(min(wake - now, 60_000))))
      }
      tickIfDue()
      resumeIfDue()
      retryIfDue()
      drainIfIdle()
    }
    drainIfIdle()
  }

  func tickIfDue() {
    let now = clock().monotonicMilliseconds
    let isDue = state.withLock { state in
      guard let time = state.tickAtMilliseconds, time <= now else { return false }
      state.tickAtMilliseconds = nil
      return true
    }
    if isDue { input(.tick) }
  }

  /// Tells the core when the kernel's opinion of its clock has changed.
  func updateClockStatus() {
    let isSynchronised = SystemClock.isSynchronised
    let isNews = state.withLock { state in
      defer { state.isClockSynchronised = isSynchronised }
      return state.isClockSynchronised != isSynchronised
    }
    guard isNews else { return }
    input(.clockStatus(isSynchronised: isSynchronised, hasHardware: SystemClock.hasHardware))
  }
}
