internal import Dispatch
internal import KithCore

extension Engine {
  /// How often the writer reads the clock's status at least.
  static let longestSleepMilliseconds: UInt64 = 30_000

  /// Commits, sends and keeps the time until ``stopWriter()``, on its own thread, because fsync
  /// blocks and Swift's shared threads must not.
  func runWriter() async { await BlockingThread.run { self.writerLoop() } }

  /// Returns false if the node runs already or the engine is closed.
  func beginRunning(link: any SessionLink) -> Bool {
    state.withLock { state in
      guard !state.isRunning, !state.shell.isClosed else { return false }
      state.isRunning = true
      state.links.node = link
      return true
    }
  }

  /// Ends ``runWriter()`` after its queued work.
  func stopWriter() {
    state.withLock { state in
      state.isRunning = false
      state.links.node = nil
      state.shell.endGathering()
    }
    wakeup.signal()
  }

  private func writerLoop() {
    while true {
      updateClockStatus()
      let now = clock().monotonicMilliseconds
      let (wake, isRunning) = state.withLock { state -> (UInt64, Bool) in
        var wake = min(now + Self.longestSleepMilliseconds, state.wakesAtMilliseconds)
        if state.shell.hasWork && !state.shell.isBusy { wake = now }
        state.sleepsUntilMilliseconds = wake
        return (wake, state.isRunning)
      }
      guard isRunning else { break }
      if wake > now {
        _ = wakeup.wait(timeout: .now() + .milliseconds(Int(min(wake - now, 60_000))))
      }
      keepTime()
    }
    drain()
  }

  func keepTime() {
    perform(drainsHere: true) { state, effects in effects = state.shell.wake(at: clock()) }
    resumeIfDue()
    drain()
  }

  /// Retries storage, if it failed and the wait is over.
  func retryIfDue() {
    if state.withLock({ $0.shell.isReloadDue(at: clock()) }) { drain() }
  }

  func updateClockStatus() {
    let isSynchronised = SystemClock.isSynchronised
    guard state.withLock({ $0.shell.clockStatus?.isSynchronised }) != isSynchronised else { return }
    input(.clockStatus(isSynchronised: isSynchronised, hasHardware: SystemClock.hasHardware))
  }
}
