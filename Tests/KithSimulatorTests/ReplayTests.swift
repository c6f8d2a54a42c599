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

  /// Messages that are passed on without end would never let the virtual time pass.
  @Test func `more than 500,000 events within a virtual second end a run`() {
    var schedule = ScheduleMaker.schedule(seed: 1, within: .init(devices: 2...2, faults: []))
    schedule.phases = [schedule.phases[0]]
    schedule.phases[0].microseconds = 2_000_000
    // No devices are parted, so each action is an event without effect. The earlier second's events
    // do not count in the later one.
    let times = Array(UInt64(0)..<20_000) + (UInt64(1_000_000)...1_500_000)
    schedule.phases[0].actions = times.map { Action(at: $0, .heal(withinMicroseconds: 0)) }
    let result = Simulation.run(schedule)
    #expect(result.violation?.promise == .bounds)
    #expect(result.violation?.text.contains("events within a second") == true)
    #expect((1_490_000...1_500_000).contains(result.microseconds))
  }
}
