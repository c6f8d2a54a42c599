internal import Dispatch
internal import KithCore

/// Why a session is not read.
struct SessionPause {
  /// The end of the pause of a device that held the lock too long, on the monotonic clock.
  var untilMilliseconds: UInt64?
  /// Whether the writer must take the outbox first.
  var isForBytes: Bool
}

extension Engine {
  struct SessionWork {
    let session: SessionID
    /// Nil if it was no proven member yet.
    let device: DeviceID?
    let recordCost: Int
    let nanoseconds: UInt64
    let outboxBytes: Int
  }

  /// Counts the cost of the work that a session caused, and stops reading sessions if it is too high.
  /// On a device's first pause, returns a closure that logs it, to run unlocked.
  func endWork(_ work: SessionWork, _ state: inout EngineState) -> (() -> Void)? {
    let now = clock().monotonicMilliseconds
    let session = work.session
    let added = max(0, state.shell.outboxBytes - work.outboxBytes)
    state.queuedBytes += added
    let cost = work.recordCost
    let debt = cost > 0 ? state.records[session, default: .ofRecords].borrow(cost, at: now) : 0
    let held = DispatchTime.now().uptimeNanoseconds - work.nanoseconds
    let slowed = slow(
      session, of: work.device, by: held, withRecords: cost > 0, at: now, &state)
    guard state.isRunning else { return nil }
    if debt > 0 { state.pause(session, until: now + debt) }
    let isFull =
      state.queuedBytes > Self.sessionPauseBytes
      || state.shell.outboxBytes > Self.pauseBytes && added > 0
    if isFull { state.pauseAll() }
    return slowed
  }

  /// Counts time that the thread that does the work spent on reading an answer for a session: local
  /// writes waited, as for the lock.
  func charge(_ nanoseconds: UInt64, to session: SessionID) {
    let now = clock().monotonicMilliseconds
    let (slowed, isEarlier) = state.withLock { state in
      let slowed = slow(session, of: nil, by: nanoseconds, at: now, &state)
      return (
        slowed, state.isRunning && state.wakesAtMilliseconds < state.sleepsUntilMilliseconds
      )
    }
    slowed?()
    // Another thread may do the work while the writer sleeps.
    if isEarlier { wakeup.signal() }
  }

  private func slow(
    _ session: SessionID, of device: DeviceID?, by nanoseconds: UInt64, withRecords: Bool = false,
    at now: UInt64, _ state: inout EngineState
  ) -> (() -> Void)? {
    let device = device ?? state.shell.replica.device(of: session)
    let branch = device.map(state.shell.replica.roster.branch(of:))
    let verdict = state.shares.count(nanoseconds, of: branch, withRecords: withRecords, at: now)
    guard state.isRunning, let verdict else { return nil }
    state.pause(session, until: verdict.pauseUntilMilliseconds)
    guard verdict.isFirst else { return nil }
    return { self.log(LogLine(.slowed, device: device)) }
  }
}

extension EngineState {
  func beginWork(of session: SessionID, recordCost: Int) -> Engine.SessionWork {
    Engine.SessionWork(
      session: session, device: shell.replica.device(of: session), recordCost: recordCost,
      nanoseconds: DispatchTime.now().uptimeNanoseconds, outboxBytes: shell.outboxBytes)
  }

  /// Stops reading all sessions until the outbox is taken.
  fileprivate mutating func pauseAll() {
    for session in shell.replica.sessions where pauses[session]?.isForBytes != true {
      pauses[session, default: SessionPause(isForBytes: true)].isForBytes = true
      transports.transport(to: session)?.pauseReading(session, true)
    }
  }

  fileprivate mutating func pause(_ session: SessionID, until end: UInt64) {
    var pause = pauses[session] ?? SessionPause(isForBytes: false)
    // A message that was already on its way must not shorten a pause.
    pause.untilMilliseconds = max(pause.untilMilliseconds ?? 0, end)
    pauses[session] = pause
    transports.transport(to: session)?.pauseReading(session, true)
  }

  /// Resumes sessions whose pause is over.
  mutating func resumeDue(at now: Instant) {
    let now = now.monotonicMilliseconds
    for (session, pause) in pauses {
      guard let until = pause.untilMilliseconds, until <= now else { continue }
      pauses[session]?.untilMilliseconds = nil
      resumeIfFree(session)
    }
  }

  /// Resumes sessions that waited until the outbox was taken.
  mutating func resumePausedForBytes() {
    queuedBytes = 0
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
    transports.transport(to: session)?.pauseReading(session, false)
  }
}

extension Input {
  /// The session whose peer caused the input, and what that counts as records. Nil for what the
  /// host's programs, timers and carriers cause, and for the end of a session, which nothing can make
  /// wait.
  var cause: (session: SessionID, recordCost: Int)? {
    switch self {
    case .received(let session, let message): (session, message.recordCost)
    case .connected(let session, _), .writable(let session, _), .drained(let session):
      (session, 0)
    case .start, .clockStatus, .acceptTime, .keepHistory, .open, .write, .adopt, .flush,
      .takeRefusals, .acceptLoss, .learn, .rename, .revoke, .admit, .join, .forgetAddress,
      .disconnected, .carrier, .tick:
      nil
    }
  }
}

/// Limits how long sessions hold the engine's lock. A session of a device over its share is not read
/// for a while.
///
/// A device may hold the lock for ``burstNanoseconds`` at once, and half of the time in the long
/// run; busy devices share that half. A device has one share with those that it certified, because
/// it can certify any number: the key is ``Roster/branch(of:)``. All peers that are not proven members
/// count as one device.
struct SessionShares {
  /// More than taking in a full store of the default limits takes.
  static let burstNanoseconds: UInt64 = 250_000_000
  /// The hold between two pauses, after the burst is used up.
  static let sliceNanoseconds: UInt64 = 10_000_000
  /// The factor for records: each message may evaluate the whole roster, and a local write may wait
  /// for several.
  static let recordsFactor: UInt64 = 4
  /// Bounded, so that one slow message does not block later ones for long.
  static let longestPauseMilliseconds: UInt64 = 1_000
  /// Above this number, devices that used nothing recently are forgotten.
  private static let devices = 64

  /// The used part of a device's burst; it shrinks by half of the passing time.
  private struct Use {
    var nanoseconds: UInt64 = 0
    var asOfMilliseconds: UInt64
    var pausedUntilMilliseconds: UInt64 = 0

    mutating func pass(until now: UInt64) {
      let passed = min(now - min(asOfMilliseconds, now), 10_000)
      nanoseconds -= min(nanoseconds, passed * 500_000)
      asOfMilliseconds = now
    }
  }

  private var uses: [DeviceID?: Use] = [:]
  private var reported: Set<DeviceID?> = []

  struct Verdict: Equatable {
    /// On the monotonic clock.
    var pauseUntilMilliseconds: UInt64
    /// Whether the device was never slowed before.
    var isFirst: Bool
  }

  /// Returns nil if the session is not paused. A nil device is a peer that is not a proven member.
  /// O(*d*) in the recent devices.
  mutating func count(
    _ nanoseconds: UInt64, of device: DeviceID?, withRecords: Bool = false, at now: UInt64
  ) -> Verdict? {
    if uses.count > Self.devices {
      for key in uses.keys { uses[key]?.pass(until: now) }
      uses = uses.filter { $0.value.nanoseconds > 0 }
    }
    var use = uses[device] ?? Use(asOfMilliseconds: now)
    use.pass(until: now)
    use.nanoseconds += nanoseconds * (withRecords ? Self.recordsFactor : 1)
    defer { uses[device] = use }
    guard use.nanoseconds > Self.burstNanoseconds else { return nil }
    let others = uses.count { $0.key != device && $0.value.pausedUntilMilliseconds > now }
    let excess = use.nanoseconds - Self.burstNanoseconds + Self.sliceNanoseconds
    let pause = min(
      excess / 500_000 * UInt64(others + 1), Self.longestPauseMilliseconds)
    // After any pause, also a shorter or longer one, it has a slice again.
    use.nanoseconds = Self.burstNanoseconds - Self.sliceNanoseconds + pause * 500_000
    use.pausedUntilMilliseconds = now + pause
    return Verdict(
      pauseUntilMilliseconds: use.pausedUntilMilliseconds,
      isFirst: reported.insert(device).inserted)
  }
}
