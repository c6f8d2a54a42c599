internal import KithCore

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
