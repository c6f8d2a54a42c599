/// A device's hybrid logical clock. Persisted with the data that it stamped (`Docs/Protocol.md`,
/// "Clocks").
package struct HybridClock: Hashable, Sendable {
  /// The latest reading given out or witnessed.
  package private(set) var latest: HybridTime

  /// A clock that goes on after a reading.
  package init(latest: HybridTime = .zero) {
    self.latest = latest
  }

  /// A new reading, later than every one before: the wall clock's millisecond in the generation of
  /// the latest, or the successor of the latest if the wall clock is not ahead of it. No reading
  /// has the wall clock's millisecond after 2200, so the counter never carries into the generation.
  package mutating func tick(at instant: Instant) -> HybridTime {
    let wall = HybridTime(
      generation: max(latest.generation, HybridTime.firstGeneration),
      milliseconds: min(instant.wallMilliseconds, Limits.lastWallMilliseconds))
    latest = max(wall, latest.successor)
    return latest
  }

  /// Takes in a reading from elsewhere, so that every later ``tick(at:)`` is after it.
  package mutating func witness(_ time: HybridTime) {
    latest = max(latest, time)
  }
}
