/// Decides when a beacon is sent: soon and often at first and after a change, then rarely.
struct BeaconSchedule: Sendable {
  /// The longest wait, in milliseconds, give or take an eighth.
  static let longest: UInt64 = 60_000
  /// The first wait.
  static let first: UInt64 = 1_000
  /// How long a change is waited for to be followed by others, at most.
  static let settling: UInt64 = 200

  private var wait = first

  /// Begins anew; gives how long to wait for the first beacon. `random` lies from 0 up to 1.
  mutating func changed(random: Double) -> UInt64 {
    wait = Self.first
    return UInt64(Double(Self.settling) * random)
  }

  /// How long to wait after a beacon that was sent.
  mutating func next(random: Double) -> UInt64 {
    defer { wait = min(2 * wait, Self.longest) }
    return UInt64(Double(wait) * (0.875 + 0.25 * random))
  }
}
