/// Shortens a failing schedule by delta debugging (Zeller and Hildebrandt, "Simplifying and
/// Isolating Failure-Inducing Input", 2002).
package struct Shrinker {
  package private(set) var schedule: Schedule
  /// Breaking another promise would be another failure.
  package let promise: Violation.Promise
  package private(set) var runs = 0
  private let limit: Int
  private let progress: (Shrinker) -> Void

  /// `limit` bounds the runs; `progress` is called after each.
  package init(
    _ schedule: Schedule, breaking promise: Violation.Promise, limit: Int = 1_500,
    progress: @escaping (Shrinker) -> Void = { _ in }
  ) {
    self.schedule = schedule
    self.promise = promise
    self.limit = limit
    self.progress = progress
  }

  /// Leaves things out until nothing more can go or the runs are used up.
  package mutating func shrink() {
    var before: Schedule
    repeat {
      before = schedule
      shortenPhases()
      for phase in schedule.phases.indices { leaveOutActions(of: phase) }
      leaveOutFaults()
      leaveOutDevices()
    } while schedule != before && runs < limit
  }

  private mutating func accept(_ candidate: Schedule) -> Bool {
    guard runs < limit, candidate != schedule else { return false }
    runs += 1
    defer { progress(self) }
    guard Simulation.run(candidate).violation?.promise == promise else { return false }
    schedule = candidate
    return true
  }

  private mutating func shortenPhases() {
    while schedule.phases.count > 1 {
      var candidate = schedule
      candidate.phases.removeLast()
      guard accept(candidate) else { break }
    }
    while schedule.phases.count > 1 {
      var candidate = schedule
      candidate.phases.removeFirst()
      guard accept(candidate) else { break }
    }
    for phase in schedule.phases.indices {
      while schedule.phases[phase].microseconds > 1_000 {
        var candidate = schedule
        candidate.phases[phase].microseconds /= 2
        let end = candidate.phases[phase].microseconds
        candidate.phases[phase].actions.removeAll { $0.at > end }
        guard accept(candidate) else { break }
      }
    }
  }

  private mutating func leaveOutActions(of phase: Int) {
    var size = max(1, schedule.phases[phase].actions.count / 2)
    while size >= 1 {
      var start = 0
      while start < schedule.phases[phase].actions.count {
        var candidate = schedule
        let end = min(start + size, candidate.phases[phase].actions.count)
        candidate.phases[phase].actions.removeSubrange(start..<end)
        if !accept(candidate) { start = end }
      }
      if size == 1 { return }
      size = max(1, size / 2)
    }
  }

  private mutating func leaveOutFaults() {
    for fault in schedule.setup.faults {
      var candidate = schedule
      candidate.setup.faults.removeAll { $0 == fault }
      _ = accept(candidate)
    }
  }

  private mutating func leaveOutDevices() {
    while schedule.setup.devices > 2 {
      var candidate = schedule
      candidate.setup.devices -= 1
      guard accept(candidate) else { break }
    }
    while schedule.setup.stores > 1 {
      var candidate = schedule
      candidate.setup.stores -= 1
      guard accept(candidate) else { break }
    }
  }
}
