import KithCrypto
import Testing

@testable import KithCore

/// What a device puts, without making it.
struct CarrierPlanTests {
  let fixture: CarrierFixture
  let mine: ChainID
  let digest = CarrierFixture.digest

  init() throws {
    fixture = try CarrierFixture()
    mine = fixture.chain(fixture.creator)
  }

  /// The creator, with so many change sets in the first store.
  func author(
    _ count: UInt64 = 3, levelBytes: Int = 4_096, isBelow: Bool = false,
    refused: Set<DeviceID> = [], below: Set<DeviceID> = []
  ) -> ObjectAuthor {
    var log = ChangeSetLog()
    for sequence in 1...count { log.insert(unsigned(sequence, of: mine)) }
    _ = log.cover(mine, through: count)
    var reader = fixture.reader([mine: count], refused: refused)
    reader.stores[fixture.store]?.horizon.isBelow = isBelow
    reader.stores[fixture.store]?.below = below
    return fixture.author(reader, logs: [fixture.store: log], levelBytes: levelBytes)
  }

  /// A body with the records, of the present generation.
  func body(
    _ through: UInt64, above: UInt64 = 0, level: UInt8 = 0, digest: Digest256? = nil,
    hasRecords: Bool = true
  ) -> ObjectBody {
    var body = fixture.body(
      above: above > 0 ? [mine: above] : [:], through: [mine: through], level: level,
      digest: digest)
    if hasRecords { body.rosterDigest = fixture.roster.digest }
    let generation = fixture.reader([:]).timeKeeper.generation
    body.time = ClockReading(
      reading: HybridTime(generation: generation, milliseconds: 0), isSynchronised: true)
    return body
  }

  /// The objects were seen in this order.
  func plan(
    _ bodies: [ObjectBody], _ author: ObjectAuthor, mayTell: Bool = false, isAsked: Bool = false
  ) -> CarrierPlan? {
    var (fixture, objects) = (fixture, CarrierObjects())
    for (time, body) in bodies.enumerated() {
      objects[fixture.name()] = fixture.known(body, seenSince: UInt64(time))
    }
    return CarrierPlan(
      objects.counting(for: author.reader), [], author, mayTell: mayTell, isAsked: isAsked)
  }

  @Test func `something is put if the objects lack it`() {
    let another = Blake2b.digest256([2])
    var below = body(3, digest: digest)
    below.parts[0].have.isBelow = true
    let cases: [(String, [ObjectBody], mayTell: Bool, above: UInt64?, hasRecords: Bool?)] = [
      ("nothing is there", [], false, 0, true),
      ("less is there", [body(2, level: 1)], false, 2, false),
      ("all is there", [body(3, digest: digest)], true, nil, nil),
      ("more is there", [body(4)], false, nil, nil),
      ("no object tells the state", [body(3, level: 1)], true, 3, false),
      ("no object tells the state, and it is early", [body(3, level: 1)], false, nil, nil),
      ("an object tells another state", [body(3, level: 1, digest: another)], false, 0, false),
      (
        "another state, and this one from nothing",
        [body(3, digest: another), body(3, digest: digest)], true, nil, nil
      ),
      (
        "this one from nothing, and then another state",
        [body(3, digest: digest), body(3, level: 1, digest: another)], false, 0, false
      ),
      (
        "another state, and this one not from nothing",
        [body(3, level: 1, digest: another), body(3, above: 3, level: 1, digest: digest)], false,
        0, false
      ),
      ("no object has the records", [body(3, level: 1, hasRecords: false)], false, 3, true),
      ("only a device below its horizon tells the state", [below], false, 0, true),
    ]
    for (name, bodies, mayTell, above, hasRecords) in cases {
      let plan = plan(bodies, author(), mayTell: mayTell)
      #expect(plan?.shares.first.map { $0.above[mine] ?? 0 } == above, "\(name)")
      #expect(plan?.hasRecords == hasRecords, "\(name)")
    }
    #expect(plan([below], author(isBelow: true), mayTell: true) == nil)
  }

  /// Another device deleted the object at once, because it has all of it and later ones do too. It
  /// counts for an hour all the same, and no listing ever shows it.
  @Test func `a state that it had before, in an object that no listing showed, is put over once`() {
    let before = body(3, above: 1, digest: Blake2b.digest256([2]))
    for (seenSince, isPut) in [(nil, false), (20, true)] as [(UInt64?, Bool)] {
      var (fixture, objects) = (fixture, CarrierObjects())
      objects[fixture.name()] = fixture.known(body(1), seenSince: 5)
      objects[fixture.name()] = fixture.known(before, seenSince: seenSince)
      let author = author()
      func plan() -> CarrierPlan? {
        CarrierPlan(
          objects.counting(for: author.reader), [], author, mayTell: true, isAsked: false)
      }
      #expect(plan()?.shares.first.map { $0.above[mine] ?? 0 } == 0)
      let name = fixture.name()
      objects[name] = fixture.known(body(3, level: 1, digest: digest), seenSince: nil)
      #expect(plan() == nil)
      objects[name]?.seenSince = 10
      #expect((plan() != nil) == isPut)
    }
  }

  /// It put its state, then heard of a horizon that it is below, and waits to hear of that state.
  @Test func `the state of a device that got below its horizon later is put by others`() {
    let earlier = body(3, digest: digest)
    #expect(plan([earlier], author(), mayTell: true) == nil)
    let knowing = author(below: [earlier.author])
    #expect(plan([earlier], knowing)?.shares.first.map { $0.above[mine] ?? 0 } == 0)
  }

  /// A change set takes about 300 bytes here, and the records go to a higher level.
  @Test func `an object goes into the lowest level that can hold what higher ones lack`() {
    let records = body(0, level: 20)
    func put(_ bodies: [ObjectBody], _ count: UInt64) -> [UInt64] {
      let plan = plan(bodies + [records], author(count, levelBytes: 1_500))
      return plan.map { [UInt64($0.level), $0.shares.first?.above[mine] ?? 0] } ?? []
    }
    #expect(put([], 1) == [0, 0])
    // Of level 0 nothing counts: the new object brings that as well.
    #expect(put([body(1)], 2) == [0, 0])
    let levels = (1...40 as ClosedRange<UInt64>).map { put([], $0)[0] }
    #expect(levels == levels.sorted() && levels[39] > 1)
    // A higher level keeps its data.
    #expect(put([body(39, level: 5)], 40) == [0, 39])
    #expect(put([body(20, level: 5), body(39, above: 20, level: 0)], 40)[1] == 20)
  }

  @Test func `words alone are put now and then, or if somebody asks`() throws {
    let author = author()
    let objects = [body(3, digest: digest)]
    func plan(_ keys: DeviceKeys, mayTell: Bool, isAsked: Bool) -> CarrierPlan? {
      var (fixture, known) = (fixture, CarrierObjects())
      for body in objects { known[fixture.name()] = fixture.known(body) }
      let said = WordContent.Store(digest: WordContent.digest(of: [mine: 3]), latest: [mine: 3])
      let word = Word(
        WordContent([fixture.store: said]), version: Word.Version(number: 1, process: 1),
        account: fixture.account, keys: keys)
      return CarrierPlan(
        known.counting(for: author.reader), [word], author, mayTell: mayTell,
        isAsked: isAsked)
    }
    for (keys, mayTell, isAsked, isPut) in [
      (fixture.creator, false, false, false), (fixture.creator, true, false, true),
      (fixture.creator, false, true, true), (fixture.second, true, false, true),
      (fixture.second, false, true, false), (fixture.revoked, true, true, false),
    ] {
      #expect((plan(keys, mayTell: mayTell, isAsked: isAsked)?.words.count == 1) == isPut)
    }
  }

  /// Others would delete it as old: they have more.
  @Test func `a device that refuses an author puts nothing to tell its state`() {
    #expect(plan([body(3)], author(), mayTell: true) != nil)
    #expect(plan([body(3)], author(refused: [fixture.second.id]), mayTell: true) == nil)
  }
}

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
