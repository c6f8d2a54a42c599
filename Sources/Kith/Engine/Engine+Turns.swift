internal import Dispatch
internal import KithCore

/// Why a session is not read.
struct SessionPause {
  /// The end of the pause of a device that held the lock too long, on the monotonic clock.
  var untilMilliseconds: UInt64?
  /// Whether it has too many bytes in the outbox.
  var isForBytes: Bool
}

extension Engine {
  struct Turn {
    let session: SessionID
    let device: DeviceID?
    let hasRecords: Bool
    let nanoseconds: UInt64
    let outboxBytes: Int
  }

  /// Counts the cost of a session's message, and stops reading the session if the cost is too high.
  /// On a device's first pause, returns a closure that logs it, to run unlocked.
  func endTurn(_ turn: Turn, _ state: inout EngineState) -> (() -> Void)? {
    let now = clock().monotonicMilliseconds
    let session = turn.session
    state.queuedBytes[session, default: 0] += state.shell.outboxBytes - turn.outboxBytes
    let isForBytes =
      state.queuedBytes[session, default: 0] > Self.sessionPauseBytes
      || state.shell.outboxBytes > Self.pauseBytes && state.shell.outboxBytes > turn.outboxBytes
    let held = DispatchTime.now().uptimeNanoseconds - turn.nanoseconds
    let verdict = state.shares.count(
      held, of: turn.device, withRecords: turn.hasRecords, at: now)
    guard state.isRunning, isForBytes || verdict != nil else { return nil }
    // A message that was already on its way must not shorten a pause.
    let old = state.pauses[session]
    let ends = [old?.untilMilliseconds, verdict?.pauseUntilMilliseconds].compactMap(\.self)
    state.pauses[session] = SessionPause(
      untilMilliseconds: ends.max(), isForBytes: isForBytes || old?.isForBytes == true)
    state.links.way(to: session)?.pauseReading(session, true)
    guard verdict?.isFirst == true else { return nil }
    return { self.log(LogLine(.slowed, device: turn.device)) }
  }

  func resumeIfDue() {
    let now = clock().monotonicMilliseconds
    state.withLock { state in
      for (session, pause) in state.pauses {
        guard let until = pause.untilMilliseconds, until <= now else { continue }
        state.pauses[session]?.untilMilliseconds = nil
        state.resumeIfFree(session)
      }
    }
  }
}

extension EngineState {
  func beginTurn(of session: SessionID, hasRecords: Bool) -> Engine.Turn {
    Engine.Turn(
      session: session, device: shell.replica.device(of: session), hasRecords: hasRecords,
      nanoseconds: DispatchTime.now().uptimeNanoseconds, outboxBytes: shell.outboxBytes)
  }

  /// Resumes sessions that waited until the outbox was taken.
  mutating func resumeDrained() {
    queuedBytes = [:]
    for session in pauses.keys where pauses[session]?.isForBytes == true {
      pauses[session]?.isForBytes = false
      resumeIfFree(session)
    }
  }

  fileprivate mutating func resumeIfFree(_ session: SessionID) {
    guard let pause = pauses[session], pause.untilMilliseconds == nil, !pause.isForBytes else {
      return
    }
    pauses[session] = nil
    links.way(to: session)?.pauseReading(session, false)
  }

  mutating func forget(_ session: SessionID) {
    queuedBytes[session] = nil
    pauses[session] = nil
  }
}

extension Input {
  var message: (session: SessionID, hasRecords: Bool)? {
    if case .received(let session, let message) = self { (session, message.isRecords) } else { nil }
  }
}
