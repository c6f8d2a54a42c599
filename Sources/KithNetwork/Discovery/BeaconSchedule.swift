/// Beacons are frequent at first and after a change, then rare. Times are in milliseconds.
struct BeaconSchedule: Sendable {
  /// Give or take an eighth.
  static let longest: UInt64 = 60_000
  static let first: UInt64 = 1_000
  /// The longest wait after a change: others may follow.
  static let settling: UInt64 = 200

  private var wait = first

  /// Returns the wait before the first beacon; `random` is from 0 up to 1.
  mutating func changed(random: Double) -> UInt64 {
    wait = Self.first
    return UInt64(Double(Self.settling) * random)
  }

  mutating func next(random: Double) -> UInt64 {
    defer { wait = min(2 * wait, Self.longest) }
    return UInt64(Double(wait) * (0.875 + 0.25 * random))
  }
}
