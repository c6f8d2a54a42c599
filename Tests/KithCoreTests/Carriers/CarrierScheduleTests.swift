import Testing

@testable import KithCore

struct CarrierScheduleTests {
  /// A schedule whose first turn has just begun.
  func begun(_ shortest: UInt64 = 5_000) -> CarrierSchedule {
    var schedule = CarrierSchedule(shortestMilliseconds: shortest, at: 0)
    schedule.begin()
    return schedule
  }

  @Test(arguments: [
    (UInt64(1_000), UInt64(5_000)), (10_000, 5_000), (30_000, 15_000), (400_000, 200_000),
    (600_000, 300_000), (9_000_000, 300_000),
  ])
  func `a turn waits half the time since anything changed`(since: UInt64, wait: UInt64) {
    var schedule = begun()
    schedule.end(isNews: false, at: since)
    #expect(schedule.dueAt == since + wait)
  }

  @Test func `writes make turns rarer while they go on`() {
    var schedule = begun()
    schedule.end(isNews: true, at: 0)
    var now: UInt64 = 0
    for wait in [2, 4, 8, 16, 32, 60, 60] as [UInt64] {
      schedule = schedule.dueAt.map { _ in schedule } ?? schedule
      schedule.wrote(at: now)
      let due = schedule.dueAt ?? 0
      #expect(due <= now + wait * 1_000)
      now = due
      schedule.begin()
      schedule.end(isNews: true, at: now)
    }
  }

  @Test func `a failure backs off, and what the storage asked is kept`() {
    var schedule = begun()
    for wait in [10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000, 900_000] as [UInt64] {
      schedule.fail(retryAfter: nil, at: 0)
      #expect(schedule.dueAt == wait)
      schedule.begin()
    }
    schedule.fail(retryAfter: 700_000, at: 1_000)
    schedule.ask(at: 2_000)
    #expect(schedule.dueAt == 701_000)
  }

  @Test func `asking during a turn brings another turn`() {
    var schedule = begun()
    schedule.noteChange(at: 10)
    schedule.end(isNews: false, at: 100)
    #expect(schedule.dueAt == 5_100)
    schedule.begin()
    schedule.ask(at: 200)
    schedule.end(isNews: false, at: 300)
    #expect(schedule.dueAt == 300)
  }
}
