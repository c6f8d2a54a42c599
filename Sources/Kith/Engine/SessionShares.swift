internal import KithCore

/// How much of the engine's lock each device's sessions may hold. A device that holds more is slowed:
/// its session is not read for a while.
///
/// Each device may hold the lock for ``burstNanoseconds`` at once, and for half of the time in the
/// long run. If several hold it longer, they share that half. All peers that have not proved to be
/// members count as one device. A value: times are arguments.
struct SessionShares {
  /// The time that a device may hold the lock at once: more than taking in a full store of the
  /// default limits takes.
  static let burstNanoseconds: UInt64 = 250_000_000
  /// The time that it may hold the lock between two pauses once the burst is used up.
  static let sliceNanoseconds: UInt64 = 10_000_000
  /// Time with records counts so many times: each message may have the whole roster evaluated, and a
  /// local write takes the lock several times, so it may wait for several such messages.
  static let recordsFactor: UInt64 = 4
  /// The longest pause: a single message that took long is not held against what follows it.
  static let longestPauseMilliseconds: UInt64 = 1_000
  /// Devices above which those that have used nothing of late are forgotten.
  private static let devices = 64

  /// The used part of one device's burst; half of the time that passes is taken off again.
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

  /// The consequence of holding the lock.
  struct Verdict: Equatable {
    /// Until when the session is not read, by the monotonic clock.
    var pauseUntilMilliseconds: UInt64
    /// Whether the device was never slowed before.
    var isFirst: Bool
  }

  /// Counts that a session of a device held the lock, with a message of records or another; nil for
  /// the device is a peer that has not proved to be a member.
  ///
  /// - Returns: Nil if the session is not paused.
  /// - Complexity: O(*d*) in the devices of late.
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
    // After the pause it has a slice again, also if the pause was cut short or made longer.
    use.nanoseconds = Self.burstNanoseconds - Self.sliceNanoseconds + pause * 500_000
    use.pausedUntilMilliseconds = now + pause
    return Verdict(
      pauseUntilMilliseconds: use.pausedUntilMilliseconds,
      isFirst: reported.insert(device).inserted)
  }
}
