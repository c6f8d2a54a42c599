package import FoundationEssentials

/// The time that the shell passes with every input; the core reads no clock.
package struct Instant: Hashable, Sendable {
  /// Milliseconds since 1970 by the host's clock, which may jump.
  package var wallMilliseconds: UInt64

  /// Milliseconds, with any origin, of a clock that never goes back.
  package var monotonicMilliseconds: UInt64

  package init(wallMilliseconds: UInt64, monotonicMilliseconds: UInt64) {
    self.wallMilliseconds = wallMilliseconds
    self.monotonicMilliseconds = monotonicMilliseconds
  }
}

extension Date {
  /// `milliseconds`: since 1970.
  package init(milliseconds: UInt64) {
    self.init(timeIntervalSince1970: Double(milliseconds) / 1_000)
  }
}
