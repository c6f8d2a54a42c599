import Foundation
import KithCore
import KithTestSupport
import Testing

@testable import KithStorage

/// New rows take the places of removed ones, and each has the clock of its commit.
@Suite struct DraftRowTests {
  static let store = MutationSource.stores[0]
  static let other = MutationSource.stores[1]

  static func put(_ ordinal: UInt64, _ bytes: [UInt8] = [1], in store: StoreIdentifier = store)
    -> Mutation
  { .put(.store(store, .draft(ordinal)), bytes) }

  static func remove(_ ordinal: UInt64, in store: StoreIdentifier = store) -> Mutation {
    .remove(.store(store, .draft(ordinal)))
  }

  static func clock(_ value: UInt64) -> Mutation { .put(.clock, HybridTime(rawValue: value).row) }

  static func begin(_ store: StoreIdentifier) -> Mutation {
    .put(.store(store, .policy), Policy.standard.row)
  }

  /// A sequence of commits.
  struct History: CustomTestStringConvertible {
    var testDescription: String
    var commits: [[Mutation]]

    init(_ description: String, _ commits: [Mutation]...) {
      testDescription = description
      self.commits = commits
    }
  }

  static let histories = [
    History("the only draft that holds the clock goes", [put(1), clock(5)], [remove(1)]),
    History(
      "the later of two goes, then the other", [put(1), clock(5)], [put(2), clock(7)],
      [remove(2)], [remove(1)]),
    History(
      "the earlier of two goes, then the other", [put(1), clock(5)], [put(2), clock(7)],
      [remove(1)], [remove(2)]),
    History("two hold the same clock", [put(1), put(2), clock(5)], [remove(1)], [remove(2)]),
    History("another store's holds it", [put(1), put(1, in: other), clock(5)], [remove(1)]),
    History(
      "a draft takes over without a clock", [put(1), clock(5)], [remove(1), put(2)],
      [remove(2)]),
    History(
      "a draft is written anew without a clock", [put(1), clock(5)], [put(1, [2])],
      [remove(1)]),
    History(
      "a draft is written anew with a clock, then goes", [put(1), clock(5)],
      [put(1, [2]), clock(6)], [remove(1)]),
    History(
      "a clock comes alone, later than the drafts'", [put(1), clock(5)], [clock(9)], [remove(1)]),
    History("the same clock comes alone", [put(1), clock(5)], [clock(5)], [remove(1)]),
    History("draft and clock go in one commit", [put(1), clock(5), remove(1)]),
    History("an older draft stays", [put(1), clock(5)], [put(2), clock(6), remove(2)]),
    History(
      "the same clock, and the draft put goes", [put(1), clock(5)], [put(2), clock(5), remove(2)],
      [remove(1)]),
    History("the clock comes before the draft", [clock(5), put(1)], [remove(1)]),
    History("a removal of nothing", [put(1), clock(5)], [remove(2)], [remove(1), remove(1)]),
    History("the last of the clocks holds", [clock(9), put(1), clock(5)], [remove(1)]),
    History("the clock goes back", [put(1), clock(9)], [clock(3)], [put(2), clock(4)]),
    History(
      "the clock goes back with a draft", [put(1), clock(9)], [put(2), clock(3)], [remove(2)]),
    History("the clock goes back to nothing", [put(1), clock(9)], [clock(0)], [remove(1)]),
    History(
      "clocks of 64 bits", [put(1), clock(1 << 63 - 1)], [put(2), clock(1 << 63)],
      [remove(1), put(3), clock(.max)], [remove(3)]),
    History(
      "rows change hands", [put(1), put(2), put(3, in: other), clock(5)],
      [remove(1), remove(3, in: other), put(4, in: other), put(5), put(6), clock(6)],
      [remove(4, in: other), remove(5), put(1, [7]), clock(7)], [put(9), remove(2), clock(8)]),
    History(
      "a draft comes back in the commit that removes it", [put(1), put(2), clock(5)],
      [remove(1), put(1, [2]), remove(2), put(3), put(2, [3]), remove(3), clock(6)]),
  ]

  /// After each commit the same is found as a restart would find, and as the values say.
  @Test(arguments: Backend.allCases, histories)
  func whatIsLeftIsWhatWasAskedFor(backend: Backend, history: History) throws {
    for restarts in [false, true] {
      try backend.withSubject { subject in
        var expected = Snapshot()
        for mutations in [[Self.begin(Self.store), Self.begin(Self.other)]] + history.commits {
          try subject.storage.commit(mutations)
          for mutation in mutations { expected.apply(mutation) }
          if restarts { #expect(try subject.reload() == expected) }
        }
        #expect(try subject.reload() == expected)
      }
    }
  }

  @Test(arguments: Backend.allCases)
  func aFailedCommitTakesNoRowAndNoClock(backend: Backend) throws {
    let big = Self.put(9, [UInt8](repeating: 1, count: 400_000))
    try backend.withSubject { subject in
      try subject.storage.commit([Self.begin(Self.store), Self.put(1), Self.put(2), Self.clock(5)])
      for mutations in [
        [Self.remove(1), Self.put(3), Self.clock(9), big], [Self.remove(1), Self.remove(2), big],
        [Self.clock(2), big],
      ] {
        try subject.setFailing(true)
        #expect(throws: StorageError.self) { try subject.storage.commit(mutations) }
        try subject.setFailing(false)
      }
      // As if those had never been: the clock is still in the drafts' rows, and these hold it.
      var expected = try subject.storage.load()
      #expect(expected.clock == HybridTime(rawValue: 5))
      for mutations in [[Self.remove(1)], [Self.remove(2), Self.put(3)], [Self.remove(3)]] {
        try subject.storage.commit(mutations)
        for mutation in mutations { expected.apply(mutation) }
        #expect(try subject.storage.load() == expected)
      }
      #expect(try subject.reload() == expected)
      #expect(expected.clock == HybridTime(rawValue: 5))
    }
  }

  /// Drafts as the core writes them, and now and then as it never would; commits that fail and
  /// restarts between.
  @Test(arguments: 0..<12)
  func randomDraftsLeaveBothAlike(run: Int) throws {
    let seed = UInt64(run) &* 6_151 &+ 3
    try Backend.sqlite.withSubject { subject in
      let twin = MemoryStorage()
      var source = MutationSource(seed: seed)
      let stores = [Self.begin(Self.store), Self.begin(Self.other)]
      try subject.storage.commit(stores)
      try twin.commit(stores)
      for step in 0..<120 {
        let mutations = source.draftCommit()
        if source.number(12) == 0 {
          try subject.setFailing(true)
          let big = Self.put(99, [UInt8](repeating: 1, count: 3_000_000))
          #expect(throws: StorageError.self) { try subject.storage.commit(mutations + [big]) }
          try subject.setFailing(false)
        }
        try subject.storage.commit(mutations)
        try twin.commit(mutations)
        switch source.number(8) {
        case 0: #expect(try subject.storage.load() == twin.load(), "seed \(seed), step \(step)")
        case 1: #expect(try subject.reload() == twin.load(), "seed \(seed), step \(step)")
        case 2: try subject.restart()
        default: break
        }
      }
      #expect(try subject.reload() == twin.load(), "seed \(seed)")
    }
  }

  /// The number of pages that a commit adds to the write-ahead log.
  private func pages(_ device: OpenDevice, _ mutations: [Mutation]) throws -> Int {
    let log = URL(fileURLWithPath: device.directory + "/kith.sqlite-wal")
    let before = try Data(contentsOf: log).count
    try device.storage.commit(mutations)
    return (try Data(contentsOf: log).count - before) / (4_096 + 24)
  }

  @Test func aDraftInTheRowOfAnotherWritesOnePage() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [Self.begin(Self.store)])
    let bytes = [UInt8](repeating: 1, count: 260)
    try device.storage.commit((1...64).map { Self.put($0, bytes) } + [Self.clock(1)])
    for ordinal in 65...200 as ClosedRange<UInt64> {
      let mutations = [
        Self.remove(ordinal - 64), Self.put(ordinal, bytes), Self.clock(ordinal),
      ]
      #expect(try pages(device, mutations) == 1)
    }
    #expect(try device.storage.load().clock == HybridTime(rawValue: 200))
  }

  /// The engine asks for this to learn whether the disk takes commits again.
  @Test func aClockThatIsKeptAlreadyIsWrittenAllTheSame() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [Self.begin(Self.store)])
    try device.storage.commit([Self.put(1), Self.clock(5)])
    for _ in 0..<3 { #expect(try pages(device, [Self.clock(5)]) == 1) }
  }

  @Test func aDraftThatIsThereTwiceIsNamed() throws {
    let directory = try TestDirectory()
    let device = try DeviceDirectory.create(
      at: directory.device, secrets: newSecrets(), initial: [Self.begin(Self.store), Self.put(42)])
    try device.storage.execute(
      "INSERT INTO own SELECT id + 1, sealed FROM own")
    let error = #expect(throws: StorageError.self) { _ = try device.storage.load() }
    #expect(error?.code == .damaged)
    #expect(error?.message.contains("row 2 of table own") == true)
  }
}

extension MutationSource {
  /// A commit about drafts: removals, then new ones, then the clock, mostly.
  mutating func draftCommit() -> [Mutation] {
    var mutations: [Mutation] = []
    for _ in 0..<number(4) {
      mutations.append(.remove(.store(draftStore(), .draft(UInt64(number(6))))))
    }
    if number(4) > 0 {
      for _ in 0..<number(4) {
        mutations.append(.put(.store(draftStore(), .draft(UInt64(number(6)))), bytes()))
      }
    }
    if number(8) == 0 { mutations.shuffle(using: &random) }
    if number(5) > 1 { mutations.append(.put(.clock, clock().row)) }
    if number(10) == 0 {
      mutations.append(.remove(.store(draftStore(), .draft(UInt64(number(6))))))
    }
    return mutations
  }

  private mutating func draftStore() -> StoreIdentifier { Self.stores[number(2)] }

  /// Later than the one before, mostly.
  private mutating func clock() -> HybridTime {
    if number(20) > 0 { latestClock &+= UInt64(number(3)) &* (.max / 500) }
    return HybridTime(rawValue: number(20) == 0 ? random.next() : latestClock)
  }
}
