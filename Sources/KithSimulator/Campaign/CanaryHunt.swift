internal import KithCore

/// Plants a bug and runs seeds until a promise breaks.
package enum CanaryHunt {
  /// What became of one bug.
  package struct Catch: Codable, Hashable, Sendable {
    package var canary: String
    package var bug: String
    /// How many seeds it took; nil: it was not caught.
    package var seeds: Int?
    /// The seed that caught it, and the promise that broke.
    package var seed: UInt64?
    package var promise: String?
  }

  /// Whether this build has bugs to plant.
  package static var isPossible: Bool { Canary.canBePlanted }

  /// All bugs.
  package static var names: [String] { Canary.allCases.map(\.rawValue) }

  /// Runs seeds with a bug until it is caught; one that only makes runs differ, by running each
  /// seed twice.
  package static func hunt(_ name: String, from first: UInt64, seeds: Int) -> Catch {
    guard let canary = Canary(rawValue: name) else {
      return Catch(canary: name, bug: "there is no such canary")
    }
    Canary.plant(canary)
    defer { Canary.plant(nil) }
    var result = Catch(canary: name, bug: canary.bug)
    for number in 0..<seeds {
      let schedule = ScheduleMaker.schedule(seed: first + UInt64(number))
      let run = Simulation.run(schedule)
      var promise = run.violation?.promise
      if promise == nil, canary == .drawFromTheSystem, Simulation.run(schedule).trace != run.trace {
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
