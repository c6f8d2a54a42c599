import KithCrypto
import Testing

@testable import KithCore

/// The rules of `Docs/Protocol/clocks.md`, one by one, without a replica.
@Suite struct TimeKeeperTests {
  private static let now: Int64 = 1_800_000_000_000
  private static let minute: Int64 = 60_000
  private static let hour = 60 * minute
  private static let day = 24 * hour
  private static let year = 365 * day

  /// A device's knowledge: its own clock's error, and those of others, some of them synchronised.
  private struct Case {
    var name: String
    var own: Int64 = 0
    var isSynchronised = false
    var hasHardware = true
    /// By how much the latest reading is ahead of the true time.
    var reading: Int64?
    var others: [(error: Int64, isSynchronised: Bool)] = []
    /// By how much the time that is used is off, and whether it is certain.
    var used: Int64
    var isCertain = false
  }

  private static let cases = [
    Case(name: "alone", own: 5, used: 5),
    Case(name: "alone and synchronised", own: 5, isSynchronised: true, used: 5, isCertain: true),
    Case(
      name: "synchronised, contradicted", isSynchronised: true, others: [(hour, true)], used: 0,
      isCertain: true),
    Case(
      name: "a synchronised peer, near", own: 5, others: [(0, true)], used: 0, isCertain: true),
    Case(
      name: "a synchronised peer within a day", own: -23 * hour, others: [(0, true)], used: 0,
      isCertain: true),
    Case(
      name: "a synchronised peer more than a day away", own: 25 * hour, others: [(0, true)],
      used: 25 * hour),
    Case(name: "nobody is synchronised", own: hour, others: [(0, false)], used: hour),
    Case(
      name: "the nearer of two, contradicted", own: hour, others: [(0, true), (5 * hour, true)],
      used: 0),
    Case(
      name: "two that agree", own: hour, others: [(0, true), (30_000, true)], used: 30_000,
      isCertain: true),
    Case(
      name: "before the release", own: -30 * year, others: [(0, false), (2 * hour, false)], used: 0),
    Case(
      name: "before the release, a synchronised one first", own: -30 * year,
      others: [(0, false), (2 * hour, true)], used: 2 * hour, isCertain: true),
    Case(
      name: "after 2200", own: 200 * year, isSynchronised: true, others: [(0, false)], used: 0,
      isCertain: true),
    Case(
      name: "before its own reading", own: -2 * day, reading: -day, others: [(0, true)], used: 0,
      isCertain: true),
    Case(
      name: "a little before its own reading", own: -2 * day, reading: -2 * day + 50_000,
      others: [(0, true)], used: -2 * day),
    Case(name: "no hardware", own: -5 * day, hasHardware: false, others: [(0, false)], used: 0),
    Case(
      name: "an impossible peer", own: -30 * year, others: [(-29 * year, true)], used: -30 * year),
  ]

  @Test(arguments: cases.indices) func `whose time`(index: Int) {
    let wanted = Self.cases[index]
    var keeper = TimeKeeper()
    if let reading = wanted.reading {
      keeper.clock = HybridClock(
        latest: HybridTime(milliseconds: UInt64(Self.now + reading)))
    }
    keeper.update(
      at: Instant(
        wallMilliseconds: UInt64(Self.now + wanted.own), monotonicMilliseconds: 7_000_000))
    keeper.set(isSynchronised: wanted.isSynchronised, hasHardware: wanted.hasHardware)
    for (number, other) in wanted.others.enumerated() {
      keeper.note(
        memberTime(other.error, other.isSynchronised), of: device(number), isHandshake: true)
    }
    #expect(
      Int64(keeper.now.wallMilliseconds) - Self.now == wanted.used, "\(wanted.name)")
    #expect(keeper.isCertain == wanted.isCertain, "\(wanted.name)")
  }

  @Test func `a time that a member tells gives no generation`() {
    var keeper = TimeKeeper()
    // A board that starts in 1970 follows a liar to 2199, but not to generation 255.
    keeper.update(at: Instant(wallMilliseconds: 1_000, monotonicMilliseconds: 7_000_000))
    keeper.set(isSynchronised: false, hasHardware: false)
    keeper.note(memberTime(170 * Self.year, true), of: device(0), isHandshake: true)
    #expect(keeper.followed == device(0))
    let hears = keeper.follow(generation: 255)
    #expect(!hears && keeper.generationLimit < 30)
  }

  @Test func `a synchronised clock that stepped back judges what comes`() {
    var keeper = TimeKeeper()
    keeper.clock = HybridClock(
      latest: HybridTime(milliseconds: UInt64(Self.now + 3 * Self.minute)))
    keeper.update(
      at: Instant(wallMilliseconds: UInt64(Self.now), monotonicMilliseconds: 7_000_000))
    keeper.set(isSynchronised: true, hasHardware: true)
    #expect(keeper.isWorthless)
    #expect(keeper.wait(for: HybridTime(milliseconds: UInt64(Self.now + Self.day))) != nil)
    for generation in 0...9 as ClosedRange<UInt8> {
      let late = HybridTime(
        generation: generation, milliseconds: Limits.lastWallMilliseconds + 1)
      #expect(keeper.wait(for: late) == .max, "in generation \(generation)")
    }
  }

  @Test func `a batch is applied or ends the session by its latest clock`() {
    var keeper = TimeKeeper()
    keeper.update(
      at: Instant(wallMilliseconds: UInt64(Self.now), monotonicMilliseconds: 7_000_000))
    let limit = Limits.publishedAheadMilliseconds
    let last = keeper.generationLimit
    let cases: [(String, Int64, UInt8, isInviters: Bool, TimeKeeper.OnBatch)] = [
      ("before", -Self.day, 1, false, .apply), ("at the limit", limit, 1, false, .apply),
      ("ahead", limit + 1, 1, false, .tooFarAhead(milliseconds: limit + 1)),
      ("an earlier generation", Self.year, 0, false, .apply),
      ("the last generation", 0, last, false, .apply),
      ("a later generation", 0, last + 1, false, .generationTooLate(last + 1)),
      ("an inviter's, ahead", Self.year, 1, true, .apply),
      ("an inviter's later generation", 5, last + 1, true, .generationTooLate(last + 1)),
    ]
    for (name, ahead, generation, isInviters, outcome) in cases {
      let published = HybridTime(
        generation: generation, milliseconds: UInt64(Self.now + ahead))
      #expect(keeper.judge(published, isInviters: isInviters) == outcome, "\(name)")
    }
  }

  private func memberTime(_ error: Int64, _ isSynchronised: Bool) -> TimeKeeper.MemberTime {
    TimeKeeper.MemberTime(
      aheadOfMonotonic: Self.now + error - 7_000_000, isSynchronised: isSynchronised,
      foundAt: 7_000_000, receivedAt: 7_000_000)
  }

  private func device(_ number: Int) -> DeviceID {
    guard let id = try? DeviceID([UInt8](repeating: UInt8(number + 1), count: 32)) else {
      preconditionFailure("32 bytes are an id")
    }
    return id
  }

  private func keeper(
    own: Int64 = 0, isSynchronised: Bool = false, reading: HybridTime = .zero
  ) -> TimeKeeper {
    var keeper = TimeKeeper()
    keeper.clock = HybridClock(latest: reading)
    keeper.update(
      at: Instant(
        wallMilliseconds: UInt64(Self.now + own), monotonicMilliseconds: 7_000_000))
    keeper.set(isSynchronised: isSynchronised, hasHardware: true)
    return keeper
  }

  private func reading(_ generation: UInt8, _ offset: Int64) -> HybridTime {
    HybridTime(generation: generation, milliseconds: UInt64(Self.now + offset))
  }

  @Test func `a time told an hour ago does not count`() {
    var keeper = keeper(own: Self.hour)
    keeper.note(memberTime(0, true), of: device(0), isHandshake: true)
    #expect(keeper.followed == device(0))
    keeper.update(
      at: Instant(
        wallMilliseconds: UInt64(Self.now + 2 * Self.hour),
        monotonicMilliseconds: 7_000_000 + UInt64(Self.hour)))
    #expect(keeper.followed == nil)
  }

  /// A message that was minutes on its way says nothing of a clock that is right.
  @Test func `an earlier time in a session does not replace a later one at once`() {
    var keeper = keeper(own: Self.hour)
    keeper.note(memberTime(0, true), of: device(0), isHandshake: true)
    keeper.note(memberTime(-120_000, true), of: device(0), isHandshake: false)
    #expect(Int64(keeper.now.wallMilliseconds) == Self.now)
    var late = memberTime(-120_000, true)
    late.foundAt += Limits.latestMemberTimeMilliseconds
    keeper.note(late, of: device(0), isHandshake: false)
    #expect(Int64(keeper.now.wallMilliseconds) == Self.now - 120_000)
  }

  @Test func `generations are rationed`() {
    // 379 days since 2026.
    var keeper = keeper(isSynchronised: true, reading: reading(3, 0))
    #expect(keeper.generationLimit == 20)
    for (told, isNews): (UInt8, Bool) in [(3, false), (21, false), (20, true), (20, false)] {
      let isTaken = keeper.follow(generation: told)
      #expect(isTaken == isNews, "\(told)")
    }
    let next = keeper.tick()
    #expect(next == reading(20, 0))
    #expect(self.keeper(own: -30 * Self.year).generationLimit == 18)
  }

  /// Otherwise it is in that generation for good, and nobody takes its data (simulator seed
  /// 380001680).
  @Test func `a clock that is years ahead takes no late generation over`() {
    var keeper = keeper(own: 28 * Self.year, isSynchronised: true)
    #expect(keeper.generationLimit == 255)
    keeper.note(memberTime(28 * Self.year, true), of: device(0), isHandshake: true)
    keeper.note(memberTime(0, false), of: device(1), isHandshake: true)
    #expect(keeper.generationLimit == 20)
    let hears = keeper.follow(generation: 255)
    #expect(!hears)
    #expect(keeper.wait(for: HybridTime(generation: 255, milliseconds: 0)) == .max)
    // A time that cannot be says nothing, and neither does one that is later than its own.
    keeper.note(memberTime(-30 * Self.year, true), of: device(1), isHandshake: true)
    #expect(keeper.generationLimit == 255)
  }

  @Test func `a change set waits by how far ahead it was published`() {
    let keeper = keeper(isSynchronised: true, reading: reading(3, 0))
    for (published, wait): (HybridTime, Int64?) in [
      (reading(3, 120_000), nil), (reading(3, 120_001), 1), (reading(4, 119_000), nil),
      (reading(4, 150_000), 30_000), (reading(2, Self.year), nil), (reading(1, Self.year), nil),
      (reading(21, 0), .max), (HybridTime(rawValue: .max), .max),
    ] { #expect(keeper.wait(for: published) == wait, "\(published)") }
    // A worthless clock that follows nobody judges nothing but the ration.
    let board = self.keeper(own: -30 * Self.year, reading: reading(1, 0))
    #expect(board.wait(for: reading(1, 5 * Self.year)) == nil)
    #expect(board.wait(for: reading(19, 0)) == .max)
  }

  @Test func `a clock that is ahead heals`() {
    let (far, lead) = (20 * Self.hour, 11 * Self.minute)
    func healed(
      _ ahead: Int64, published: HybridTime = .zero, isSynchronised: Bool = true,
      isAccepted: Bool = false, generation: UInt8 = 1
    ) -> (TimeKeeper.Healing?, HybridTime) {
      var keeper = keeper(isSynchronised: isSynchronised, reading: reading(generation, ahead))
      let healing = keeper.heal(published: { published }, isAccepted: isAccepted)
      return (healing, keeper.clock.latest)
    }
    // Less than ten minutes pass by themselves.
    #expect(healed(9 * Self.minute) == (nil, reading(1, 9 * Self.minute)))
    // Drafts that are earlier than the time keep their stamps, so the clock is not set before it.
    #expect(healed(far) == (.setBack(milliseconds: far), reading(1, 0)))
    #expect(healed(far, isSynchronised: false) == (nil, reading(1, far)))
    #expect(
      healed(far, published: reading(1, lead))
        == (.newGeneration(milliseconds: far), reading(2, 0)))
    // Nothing far ahead left the device: it goes on after what did.
    #expect(
      healed(far, published: reading(1, Self.minute))
        == (.setBack(milliseconds: far), reading(1, Self.minute)))
    // A clock reading that was published in an earlier generation does not count any more.
    #expect(
      healed(far, published: reading(1, lead), generation: 2)
        == (.setBack(milliseconds: far), reading(2, 0)))
    #expect(
      healed(far, published: reading(20, far), generation: 20) == (.noneLeft, reading(20, far)))
    #expect(
      healed(far, published: reading(1, far), isSynchronised: false, isAccepted: true)
        == (.newGeneration(milliseconds: far), reading(2, 0)))
  }

  @Test func `that no generation is left is said once, and tried again after a while`() {
    let far = 20 * Self.hour
    var keeper = keeper(isSynchronised: true, reading: reading(20, far))
    let published = reading(20, far)
    let said = (0..<2).map { _ in keeper.heal(published: { published }) }
    #expect(said == [.noneLeft, nil])
    let first = keeper.planHealing()
    #expect(first == keeper.now.monotonicMilliseconds + Limits.haveIntervalMilliseconds)
    let again = keeper.planHealing()
    #expect(again == first, "until that time has come")
  }
}

/// Which clocks are too far apart to exchange stores, and when that is news.
@Suite struct ClockDifferencesTests {
  private static let now: Int64 = 1_800_000_000_000
  private static let limit = Limits.clockDifferenceMilliseconds

  private func keeper(isSynchronised: Bool = false, at wall: Int64 = now) -> TimeKeeper {
    var keeper = TimeKeeper()
    keeper.update(at: Instant(wallMilliseconds: UInt64(wall), monotonicMilliseconds: 5_000))
    keeper.set(isSynchronised: isSynchronised, hasHardware: true)
    return keeper
  }

  private func memberTime(_ wall: Int64, isSynchronised: Bool = false) -> TimeKeeper.MemberTime {
    TimeKeeper.MemberTime(
      aheadOfMonotonic: wall - 5_000, isSynchronised: isSynchronised, foundAt: 5_000,
      receivedAt: 5_000)
  }

  @Test(
    arguments: [
      (0, true, true), (limit, true, true), (limit + 1, false, false),
      // A delayed message seems behind, so it is judged only in a handshake.
      (-limit - 1, true, false), (-limit, true, true),
    ] as [(Int64, Bool, Bool)])
  func `clocks agree within the limit, and one behind ours always but in a handshake`(
    offset: Int64, agrees: Bool, agreesInHandshake: Bool
  ) {
    let (keeper, memberTime) = (keeper(), memberTime(Self.now + offset))
    #expect(keeper.offset(of: memberTime) == offset)
    #expect(keeper.agrees(with: memberTime, isHandshake: false) == agrees)
    #expect(keeper.agrees(with: memberTime, isHandshake: true) == agreesInHandshake)
  }

  @Test func `an impossible clock differs from none`() {
    let wrong = Int64(Limits.lastWallMilliseconds) + 1
    #expect(keeper().agrees(with: memberTime(wrong), isHandshake: true))
    #expect(keeper(at: 1_000).agrees(with: memberTime(Self.now), isHandshake: true))
  }

  @Test(
    arguments: [
      (true, true, .bothSynchronised), (false, false, .neitherSynchronised),
      (true, false, .theyAreTooFar), (false, true, .tooFar),
    ] as [(Bool, Bool, NodeStatus.ClockDifference.Outcome)])
  func `the outcome names the one whose clock is wrong`(
    ours: Bool, theirs: Bool, outcome: NodeStatus.ClockDifference.Outcome
  ) {
    #expect(keeper(isSynchronised: ours).outcome(isTheirsSynchronised: theirs) == outcome)
  }

  @Test func `of two synchronised clocks the nearer is followed`() {
    var keeper = keeper()
    keeper.note(
      memberTime(Self.now + 60_000, isSynchronised: true), of: deviceKeys(2).id, isHandshake: true)
    #expect(keeper.outcome(isTheirsSynchronised: true) == .anotherIsNearer)
  }

  @Test func `a difference is news if its outcome changes, and so is its end`() {
    var differences = ClockDifferences()
    let device = deviceKeys(2).id
    func note(_ milliseconds: Int64, _ outcome: NodeStatus.ClockDifference.Outcome) -> Bool {
      differences.note(
        NodeStatus.ClockDifference(device: device, milliseconds: milliseconds, outcome: outcome))
    }
    let news = [note(1, .tooFar), note(2, .tooFar), note(3, .bothSynchronised)]
    #expect(news == [true, false, true])
    #expect(differences.all.map(\.milliseconds) == [3])
    let ends = [differences.agree(with: device), differences.agree(with: device)]
    #expect(ends == [true, false])
    #expect(differences.all.isEmpty)
  }
}
