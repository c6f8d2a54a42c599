/// Runs many seeds, several at a time.
package struct Campaign: Sendable {
  package var firstSeed: UInt64
  /// Nil: until the time is over.
  package var seeds: Int?
  /// After this time no new seed begins; nil: after all seeds.
  package var limit: Duration?
  package var bounds: ScheduleMaker.Bounds
  package var workers: Int
  /// After so many failures no new seed begins.
  package var failureLimit: Int

  package init(
    firstSeed: UInt64, seeds: Int?, limit: Duration?, bounds: ScheduleMaker.Bounds, workers: Int,
    failureLimit: Int = 10
  ) {
    self.firstSeed = firstSeed
    self.seeds = seeds
    self.limit = limit
    self.bounds = bounds
    self.workers = max(1, workers)
    self.failureLimit = failureLimit
  }

  package struct Summary: Sendable {
    package var runs = 0
    package var failures: [RunResult] = []
    package var tally = Tally()
    /// Virtual time, summed over all devices of all runs.
    package var deviceMicroseconds: UInt64 = 0
    package var events = 0
    /// Runs with each fault.
    package var faults: [Fault: Int] = [:]
    /// Runs by their number of devices.
    package var devices: [Int: Int] = [:]
    package var duration = Duration.zero

    package init() {}

    fileprivate mutating func add(_ result: RunResult) {
      runs += 1
      tally.add(result.tally)
      deviceMicroseconds += result.deviceMicroseconds
      events += result.events
      for fault in result.schedule.setup.faults { faults[fault, default: 0] += 1 }
      devices[result.schedule.setup.devices, default: 0] += 1
      if result.violation != nil { failures.append(result) }
    }
  }

  /// `progress` is called after each run. Failures are returned in the order of their seeds.
  package func run(_ progress: (Summary) -> Void) async -> Summary {
    let clock = ContinuousClock()
    let start = clock.now
    var summary = Summary()
    var next = 0
    func mayBegin() -> Bool {
      if let seeds, next >= seeds { return false }
      if let limit, clock.now - start >= limit { return false }
      return summary.failures.count < failureLimit && !Task.isCancelled
    }
    await withTaskGroup(of: RunResult.self) { group in
      func begin() {
        let seed = firstSeed &+ UInt64(next)
        next += 1
        group.addTask {
          Simulation.run(ScheduleMaker.schedule(seed: seed, within: bounds))
        }
      }
      for _ in 0..<workers where mayBegin() { begin() }
      while let result = await group.next() {
        summary.add(result)
        summary.duration = clock.now - start
        progress(summary)
        if mayBegin() { begin() }
      }
    }
    summary.failures.sort { $0.schedule.seed < $1.schedule.seed }
    return summary
  }
}
