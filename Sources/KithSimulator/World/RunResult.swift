/// How a run went.
package struct RunResult: Sendable {
  package var schedule: Schedule
  /// The promise that was broken; nil: none was.
  package var violation: Violation?
  /// Virtual time that passed.
  package var microseconds: UInt64
  /// Virtual time that passed, summed over the devices.
  package var deviceMicroseconds: UInt64
  /// A hash over all that happened, in hexadecimal: equal for equal runs.
  package var trace: String
  /// Events in the trace.
  package var events: Int
  /// What happened, in words, where that was asked for.
  package var lines: [String]
  package var tally: Tally
}

/// What happened in runs, counted: a fault that never struck shows nothing.
package struct Tally: Sendable {
  package var counts: [String: Int] = [:]
  /// The longest time from the end of the faults to convergence, in virtual microseconds.
  package var longestConvergence: UInt64 = 0

  package init() {}

  mutating func count(_ what: String, _ number: Int = 1) { counts[what, default: 0] += number }

  /// Adds another run's.
  package mutating func add(_ other: Tally) {
    counts.merge(other.counts, uniquingKeysWith: +)
    longestConvergence = max(longestConvergence, other.longestConvergence)
  }
}
