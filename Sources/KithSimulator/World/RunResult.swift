package struct RunResult: Sendable {
  package var schedule: Schedule
  package var violation: Violation?
  /// Virtual time.
  package var microseconds: UInt64
  /// Virtual time, summed over the devices.
  package var deviceMicroseconds: UInt64
  /// A hash of all events: equal for equal runs.
  package var trace: String
  package var events: Int
  /// The events in words, if requested.
  package var lines: [String]
  package var tally: Tally
}

/// Counts of events; a fault that never struck is missing.
package struct Tally: Sendable {
  package var counts: [String: Int] = [:]
  /// From the end of the faults to convergence, in virtual microseconds.
  package var longestConvergence: UInt64 = 0

  package init() {}

  mutating func count(_ what: String, _ number: Int = 1) { counts[what, default: 0] += number }

  package mutating func add(_ other: Tally) {
    counts.merge(other.counts, uniquingKeysWith: +)
    longestConvergence = max(longestConvergence, other.longestConvergence)
  }
}
