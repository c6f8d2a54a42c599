internal import KithCore

/// A host's two clocks: people and NTP step the wall clock, the monotonic one only advances. Both
/// may drift.
struct HostClock {
  /// The true time at which every run begins, in milliseconds since 1970.
  static let origin: UInt64 = 1_800_000_000_000

  /// The wall clock's error besides its drift.
  private(set) var offsetMilliseconds: Int64 = 0
  private var partsPerMillion: Int64 = 0
  /// Local microseconds, and the true time of that count.
  private var local: UInt64 = 0
  private var since: UInt64 = 0

  /// `now` is true microseconds since the run began.
  func instant(at now: UInt64) -> Instant {
    let local = self.local(at: now)
    let wall = Int64(Self.origin) + Int64(local / 1_000) + offsetMilliseconds
    return Instant(
      wallMilliseconds: UInt64(max(0, wall)), monotonicMilliseconds: 1_000_000 + local / 1_000)
  }

  private func local(at now: UInt64) -> UInt64 {
    let passed = Int64(now - since)
    return local + UInt64(passed + passed * partsPerMillion / 1_000_000)
  }

  mutating func step(byMilliseconds step: Int64) { offsetMilliseconds += step }

  mutating func drift(partsPerMillion: Int, at now: UInt64) {
    local = local(at: now)
    since = now
    self.partsPerMillion = Int64(partsPerMillion)
  }

  /// Corrects the wall clock to a few milliseconds, and ends the drift.
  mutating func mend(at now: UInt64) {
    drift(partsPerMillion: 0, at: now)
    offsetMilliseconds = Int64(now / 1_000) - Int64(local / 1_000)
  }

  /// Returns true microseconds.
  func wait(untilMonotonic milliseconds: UInt64, at now: UInt64) -> UInt64 {
    let reading = instant(at: now).monotonicMilliseconds
    guard milliseconds > reading else { return 0 }
    let local = Int64(milliseconds - reading) * 1_000
    return UInt64(local - local * partsPerMillion / (1_000_000 + partsPerMillion)) + 1_000
  }
}
