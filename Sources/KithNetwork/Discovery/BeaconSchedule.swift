/// Decides the times of beacons: often at first and after a change, then rarely.
struct BeaconSchedule: Sendable {
  /// The longest wait, in milliseconds, give or take an eighth.
  static let longest: UInt64 = 60_000
  /// The first wait.
  static let first: UInt64 = 1_000
  /// The longest wait after a change, in case others follow.
  static let settling: UInt64 = 200

  private var wait = first

  /// Restarts, and returns the wait before the first beacon. `random` is from 0 up to 1.
  mutating func changed(random: Double) -> UInt64 {
    wait = Self.first
    return UInt64(Double(Self.settling) * random)
  }

  /// Returns the wait after a beacon.
  mutating func next(random: Double) -> UInt64 {
    defer { wait = min(2 * wait, Self.longest) }
    return UInt64(Double(wait) * (0.875 + 0.25 * random))
  }
}
