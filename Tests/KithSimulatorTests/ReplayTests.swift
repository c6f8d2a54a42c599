import Foundation
import KithSimulator
import Testing

/// The simulator on the schedules and seeds that once failed, on some that never did, and on itself.
@Suite struct ReplayTests {
  /// Schedules that broke a promise until what was wrong was mended; the file's name says what was.
  static let schedules: [String] = {
    let folder = Bundle.module.bundleURL.appending(path: "Schedules")
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.filter { $0.hasSuffix(".json") }.sorted()
  }()

  @Test(arguments: schedules) func `a run that once failed`(name: String) throws {
    let file = Bundle.module.bundleURL.appending(path: "Schedules/\(name)")
    let schedule = try JSONDecoder().decode(Schedule.self, from: Data(contentsOf: file))
    let result = Simulation.run(schedule)
    #expect(result.violation == nil, "kith-sim replay \(name)")
  }

  /// As many as run in a few seconds: seed 8 alone takes longer. `kith-sim run` is for more.
  @Test(arguments: UInt64(9)...28) func `every promise holds`(seed: UInt64) {
    let result = Simulation.run(ScheduleMaker.schedule(seed: seed, within: .init(devices: 2...6)))
    #expect(result.violation == nil, "kith-sim replay \(seed) --devices 2-6")
  }

  /// More devices than are all connected to all: the first two over the overlay's plan.
  @Test(arguments: [3, 4, 11] as [UInt64]) func `every promise holds in an overlay`(seed: UInt64) {
    var schedule = ScheduleMaker.schedule(seed: seed, within: .init(devices: 9...11))
    schedule.setup.degree = seed == 11 ? 3 : 0
    let result = Simulation.run(schedule)
    #expect(result.violation == nil, "seed \(seed)")
  }

  @Test func `the same schedule gives the same trace`() {
    let schedule = ScheduleMaker.schedule(seed: 77, within: .init(devices: 2...6))
    let (first, second) = (Simulation.run(schedule), Simulation.run(schedule))
    #expect(first.trace == second.trace)
    #expect(first.events > 100)
    #expect(first.trace != Simulation.run(ScheduleMaker.schedule(seed: 78)).trace)
  }
}
