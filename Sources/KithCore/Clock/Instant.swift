/// The time that the shell hands to the core with every input. The core reads no clock.
package struct Instant: Hashable, Sendable {
  /// Milliseconds since 1970 by the host's clock, which may step.
  package var wallMilliseconds: UInt64

  /// Milliseconds of a clock that never steps back; its origin means nothing.
  package var monotonicMilliseconds: UInt64

  /// Makes an instant.
  package init(wallMilliseconds: UInt64, monotonicMilliseconds: UInt64) {
    self.wallMilliseconds = wallMilliseconds
    self.monotonicMilliseconds = monotonicMilliseconds
  }
}
