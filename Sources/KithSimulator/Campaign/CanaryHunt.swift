/// Plants a bug and runs seeds, then kept schedules, until a promise breaks. Hunts in several tasks do
/// not disturb each other.
package struct CanaryHunt: Sendable {
  package struct Catch: Codable, Hashable, Sendable {
    package var canary: String
    package var bug: String
    /// How many seeds it took; nil: no seed caught it.
    package var seeds: Int?
    package var seed: UInt64?
    /// The kept schedule that caught it, if no seed did.
    package var schedule: String?
    /// Nil: not caught.
    package var promise: String?
  }

  package var firstSeed: UInt64
  package var seeds: Int
  package var bounds: ScheduleMaker.Bounds
  package var kept: [(name: String, schedule: Schedule)]

  package init(
    firstSeed: UInt64, seeds: Int, bounds: ScheduleMaker.Bounds,
    kept: [(name: String, schedule: Schedule)] = []
  ) {
    self.firstSeed = firstSeed
    self.seeds = seeds
    self.bounds = bounds
    self.kept = kept
  }

  package func hunt(_ name: String, _ bug: String) -> Catch {
    Canaries.planting(name) {
      var found = Catch(canary: name, bug: bug)
      for number in 0..<seeds {
        let seed = firstSeed + UInt64(number)
        let schedule = ScheduleMaker.schedule(seed: seed, within: bounds)
        if let promise = promise(brokenBy: schedule, with: name) {
          (found.seeds, found.seed, found.promise) = (number + 1, seed, promise)
          return found
        }
      }
      for (name, schedule) in kept {
        if let promise = promise(brokenBy: schedule, with: name) {
          (found.schedule, found.promise) = (name, promise)
          return found
        }
      }
      return found
    }
  }

  /// A bug that only makes runs differ needs each seed twice.
  private func promise(brokenBy schedule: Schedule, with name: String) -> String? {
    let run = Simulation.run(schedule)
    var promise = run.violation?.promise
    if promise == nil, name == "drawFromTheSystem", Simulation.run(schedule).trace != run.trace {
      promise = .sameRun
    }
    return promise.map { "\($0.rawValue) \($0)" }
  }
}
