/// A device's hybrid logical clock, persisted with the data that it stamped (`Docs/Protocol.md`,
/// "Clocks, stamps, claims").
package struct HybridClock: Hashable, Sendable {
  /// The latest reading given out or witnessed.
  package private(set) var latest: HybridTime

  package init(latest: HybridTime = .zero) {
    self.latest = latest
  }

  /// Returns a reading later than all before: the wall clock in the current generation, or the
  /// successor of ``latest`` if later.
  ///
  /// The wall clock counts only until 2200, so the counter never carries into the generation.
  package mutating func tick(at instant: Instant) -> HybridTime {
    let wall = HybridTime(
      generation: max(latest.generation, HybridTime.firstGeneration),
      milliseconds: min(instant.wallMilliseconds, Limits.lastWallMilliseconds))
    latest = max(wall, latest.successor)
    return latest
  }

  /// Takes in a reading from elsewhere: every later ``tick(at:)`` is after it.
  package mutating func witness(_ time: HybridTime) {
    latest = max(latest, time)
  }
}
