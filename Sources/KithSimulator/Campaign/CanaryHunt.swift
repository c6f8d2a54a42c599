/// Plants a bug and runs seeds until a promise breaks; hunts in several tasks do not disturb each other.
package enum CanaryHunt {
  package struct Catch: Codable, Hashable, Sendable {
    package var canary: String
    package var bug: String
    /// Nil: not caught.
    package var seeds: Int?
    package var seed: UInt64?
    package var promise: String?
  }

  /// A bug that only makes runs differ needs each seed twice.
  package static func hunt(
    _ name: String, _ bug: String, from first: UInt64, seeds: Int,
    within bounds: ScheduleMaker.Bounds = ScheduleMaker.Bounds()
  ) -> Catch {
    Canaries.planting(name) { huntPlanted(name, bug, from: first, seeds: seeds, within: bounds) }
  }

  private static func huntPlanted(
    _ name: String, _ bug: String, from first: UInt64, seeds: Int,
    within bounds: ScheduleMaker.Bounds
  ) -> Catch {
    var result = Catch(canary: name, bug: bug)
    for number in 0..<seeds {
      let schedule = ScheduleMaker.schedule(seed: first + UInt64(number), within: bounds)
      let run = Simulation.run(schedule)
      var promise = run.violation?.promise
      if promise == nil, name == "drawFromTheSystem", Simulation.run(schedule).trace != run.trace {
        promise = .sameRun
      }
      if let promise {
        result.seeds = number + 1
        result.seed = schedule.seed
        result.promise = "\(promise.rawValue) \(promise)"
        return result
      }
    }
    return result
  }
}
