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

  /// Whether the writer's thread takes over; false if it runs already or the engine is closed.
  func beginRunning(link: any SessionLink) -> Bool {
    state.withLock { state in
      guard !state.isRunning, !state.shell.isClosed else { return false }
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
      state.shell.endGathering()
    }
    wakeup.signal()
  }

  private func writerLoop() {
    while true {
      updateClockStatus()
      let now = clock().monotonicMilliseconds
      let (wake, isRunning) = state.withLock { state -> (UInt64, Bool) in
        let wakes = [state.shell.wakesAtMilliseconds, state.nextResumption].compactMap(\.self)
        var wake = min(now + Self.longestSleepMilliseconds, wakes.min() ?? .max)
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

  /// Does what is due by now.
  func keepTime() {
    perform(drainsHere: true) { state in ((), state.shell.wake(at: clock())) }
    resumeIfDue()
    drain()
  }

  /// Tries storage again, if it failed and the wait is over.
  func retryIfDue() {
    if state.withLock({ $0.shell.isReloadDue(at: clock()) }) { drain() }
  }

  /// Tells the core when the kernel's opinion of its clock has changed.
  func updateClockStatus() {
    let isSynchronised = SystemClock.isSynchronised
    guard state.withLock({ $0.shell.clockStatus?.isSynchronised }) != isSynchronised else { return }
    input(.clockStatus(isSynchronised: isSynchronised, hasHardware: SystemClock.hasHardware))
  }
}
