/// A device's hybrid logical clock. Persisted with the data that it stamped (`Docs/Protocol.md`,
/// "Clocks").
public struct HybridClock: Hashable, Sendable {
  /// The latest reading given out or witnessed.
  public private(set) var latest: HybridTime

  /// A clock that goes on after a reading.
  public init(latest: HybridTime = .zero) {
    self.latest = latest
  }

  /// A new reading, later than every one before: the wall clock's millisecond, or the successor of
  /// the latest where the wall clock is not ahead of it.
  public mutating func tick(at instant: Instant) -> HybridTime {
    let wall = HybridTime(milliseconds: instant.wallMilliseconds)
    latest = Canary.setTheClockBack.isPlanted ? wall : max(wall, latest.successor)
    return latest
  }

  /// Takes in a reading from elsewhere, so that every later ``tick(at:)`` is after it.
  public mutating func witness(_ time: HybridTime) {
    latest = max(latest, time)
  }
}
