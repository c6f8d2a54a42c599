import KithCrypto
import Testing

@testable import KithCore

/// The drafts that may be forgotten for later ones, and those that may not.
@Suite struct DraftTests {
  private func draft(_ operations: KithCore.Operation...) -> Draft {
    Draft(ordinal: 1, clock: .zero, operations: operations)
  }

  @Test func `a draft makes way only for a write of the same key that stands wherever it does`() {
    let large = set("k", blob(100))
    let small = set("k", blob(10))
    #expect(draft(small).covers(draft(large)))
    #expect(draft(large).covers(draft(large)))
    #expect(draft(remove("k")).covers(draft(large)))
    #expect(draft(remove("k")).covers(draft(remove("k"))))
    #expect(!draft(large).covers(draft(small)), "the larger might be refused")
    #expect(!draft(small).covers(draft(remove("k"))), "any value might be refused")
    #expect(!draft(small).covers(draft(set("l", blob(100)))))
    #expect(!draft(small).covers(draft(large, set("l", 1))), "the other key would be lost")
    #expect(!draft(small, set("l", 1)).covers(draft(large)), "the other key may have it refused")
  }

  @Test func `a larger write that is refused leaves the one before it`() throws {
    let world = try TestWorld(devices: 3, seed: 140, policy: Policy(totalBytes: 1_000))
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.write([set("k", blob(100))], on: 2)
    world.write([set("k", blob(600))], on: 2)
    world.connect(0, 1)
    world.settle()
    world.write([set("theirs", blob(600))], on: 0)
    world.settle()
    world.connect(1, 2)
    world.settle()
    #expect(world.text("k", on: 0) == blob(100))
    #expect(
      world.devices[2].replica.refusals(of: TestWorld.store).map(\.operations)
        == [[set("k", blob(600))]])
    world.checkConvergence("larger")
  }

  @Test(arguments: [false, true])
  func `a write that a smaller one took the place of was lost with it`(restarts: Bool) throws {
    let policy = Policy(totalBytes: 300, keys: 10, keyBytes: 64, valueBytes: 300)
    let world = try TestWorld(devices: 3, seed: 142, policy: policy)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.connect(1, 2)
    world.write([set("other", blob(131))], on: 1)
    world.settle()
    world.disconnectAll()
    world.write([set("k", blob(97))], on: 0)
    world.write([set("m", blob(77))], on: 0)
    // With theirs there is room for either of the two keys. The first keeps its place.
    world.write([set("k", blob(90))], on: 0)
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts.count == 2)
    if restarts { try world.restart(0) }
    world.connectAll()
    world.settle()
    #expect(world.text("k", on: 1) == blob(90))
    #expect(
      world.devices[0].replica.refusals(of: TestWorld.store).map(\.operations)
        == [[set("m", blob(77))]])
    world.checkInvariants("the place")
    world.checkConvergence("the place")
  }

  @Test(arguments: [false, true])
  func `a value that a draft replaced came back from the disk once the draft was gone`(
    isRefused: Bool
  ) throws {
    let world = try TestWorld(devices: 2, seed: 143, policy: Policy(totalBytes: 1_000))
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.write([set("k", blob(600))], on: 0)
    // Met and published, or refused, before a flush has made it durable.
    world.write([set("k", blob(500))], on: 0, flush: false)
    if isRefused { world.write([set("theirs", blob(600))], on: 1) }
    world.connectAll()
    while world.devices[0].replica.hasUnpublished(TestWorld.store), world.deliverOne() {}
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts == [:])
    let told = world.devices[0].replica.refusals(of: TestWorld.store).map(\.operations)
    try world.restart(0)
    #expect(!world.devices[0].replica.hasUnpublished(TestWorld.store))
    #expect(told.count + world.view(0).count { $0.key == Key("k") } == 1)
    world.connectAll()
    world.settle()
    world.checkConvergence("gone")
  }

  @Test func `drafts are laid anew after a restart, with the rooms they claimed`() throws {
    let world = try TestWorld(devices: 2, seed: 141, policy: Policy(totalBytes: 1_000))
    world.write([set("a", blob(400))], on: 0)
    world.write([set("b", blob(400))], on: 0)
    try world.restart(0)
    #expect(world.view(0).count == 2)
    let id = world.write([set("c", blob(400))], on: 0)
    #expect(world.devices[0].refused[id] != nil)
    world.connectAll()
    world.settle()
    #expect(world.view(1).count == 2)
    world.checkConvergence("laid anew")
  }
}

/// The queue of drafts alone: what adding one comes to, and that storage follows.
@Suite struct DraftQueueTests {
  private let store = TestWorld.store
  private let limit = 1 << 20

  /// The contents of storage after some mutations.
  private func applied(_ mutations: [Mutation], to disk: [UInt64: Draft]) -> [UInt64: Draft] {
    var disk = disk
    for mutation in mutations {
      switch mutation {
      case .put(.store(_, .draft(let ordinal)), let bytes):
        disk[ordinal] = Draft(ordinal: ordinal, decoding: bytes)
      case .remove(.store(_, .draft(let ordinal))): disk[ordinal] = nil
      default: Issue.record("\(mutation) is not about drafts")
      }
    }
    return disk
  }

  private func queue(_ drafts: [[KithCore.Operation]]) -> DraftQueue {
    var queue = DraftQueue()
    for (number, operations) in drafts.enumerated() {
      queue.add(operations, clock: clock(number), limit: limit)
    }
    return queue
  }

  private func clock(_ number: Int) -> HybridTime {
    HybridTime(milliseconds: 1_000 + UInt64(number))
  }

  private func byOrdinal(_ queue: DraftQueue) -> [UInt64: Draft] {
    Dictionary(uniqueKeysWithValues: queue.drafts.map { ($0.ordinal, $0) })
  }

  /// Drafts, one more, and the ordinals in the queue after it; a covered draft is replaced.
  @Test(arguments: [
    ([], [set("k", 1)], [1]),
    ([[set("k", 1)]], [set("k", 2)], [1]),
    ([[set("k", 1)], [set("l", 1)]], [set("k", 2)], [1, 2]),
    ([[set("k", blob(5))]], [set("k", blob(6))], [1, 2]),
    ([[set("k", 1)]], [remove("k")], [1]),
    ([[set("k", 1), set("l", 1)]], [set("k", 2)], [1, 2]),
    ([[set("k", 1)]], [set("k", 2), set("l", 1)], [1, 2]),
    ([[set("k", 1)], [set("k", 2), set("l", 1)]], [set("k", 3)], [1, 2, 3]),
  ])
  func `a draft is the last, or has the place of the one that it covers`(
    before: [[KithCore.Operation]], added: [KithCore.Operation], ordinals: [UInt64]
  ) {
    var queue = queue(before)
    let last = queue.drafts
    let outcome = queue.add(added, clock: clock(9), limit: limit)
    #expect(queue.drafts.map(\.ordinal) == ordinals)
    let isReplacing = ordinals.count == before.count
    let replaced = last.first { $0.keys == added.map { Key($0.key) } }
    #expect(outcome == (isReplacing ? replaced.map { .replaced($0) } : .appended))
    #expect(queue.bytes == queue.drafts.reduce(0) { $0 + $1.operations.keptBytes })
  }

  @Test func `drafts whose keys are all written later go only if there are many`() {
    let both: [KithCore.Operation] = [set("k", 1), set("l", 1)]
    var roomy = queue([both, both])
    #expect(roomy.add(both, clock: clock(3), limit: limit) == .appended)
    #expect(roomy.drafts.map(\.ordinal) == [1, 2, 3])
    var crowded = queue([both, both])
    let narrow = crowded.bytes
    #expect(crowded.bytes(adding: both, limit: narrow) == both.keptBytes)
    crowded.add(both, clock: clock(3), limit: narrow)
    #expect(crowded.drafts.map(\.ordinal) == [3])
    // A draft with a key of its own stays, and then there is too little space.
    var kept = queue([both, [set("k", 1), set("mine", 1)]])
    #expect(kept.bytes(adding: both, limit: narrow) == 2 * both.keptBytes + 3)
    kept.add(both, clock: clock(3), limit: narrow)
    #expect(kept.drafts.map(\.ordinal) == [2, 3])
  }

  @Test func `storage holds exactly the drafts once what the queue asks for is committed`() {
    var random = SeededEntropy(seed: 12)
    var queue = DraftQueue()
    var disk: [UInt64: Draft] = [:]
    for step in 0..<2_000 {
      let keys = ["a", "b", "c", "d"].shuffled(using: &random).prefix(
        Int.random(in: 1...2, using: &random))
      switch Int.random(in: 0..<10, using: &random) {
      case 0: queue.update { $0.ordinal.isMultiple(of: 3) ? nil : $0 }
      case 1:
        queue.update { draft in
          var draft = draft
          draft.operations.removeFirst()
          return draft.operations.isEmpty ? nil : draft
        }
      case 2:
        disk = applied(queue.removeAll(in: store), to: disk)
        #expect(disk.isEmpty && queue.isEmpty && queue.bytes == 0)
      default:
        let size = Int.random(in: 0...40, using: &random)
        let operations = keys.sorted().map { set($0, blob(size)) }
        let limit = 5_000
        let bytes = queue.bytes(adding: operations, limit: limit)
        queue.add(operations, clock: clock(step), limit: limit)
        if bytes > limit { #expect(queue.bytes == bytes) }
      }
      if Bool.random(using: &random) {
        disk = applied(queue.save(in: store), to: disk)
        #expect(disk == byOrdinal(queue))
        #expect(queue.isSaved && queue.save(in: store).isEmpty)
      }
      let ordinals = queue.drafts.map(\.ordinal)
      #expect(ordinals == ordinals.sorted() && Set(ordinals).count == ordinals.count)
      #expect(queue.bytes == queue.drafts.reduce(0) { $0 + $1.operations.keptBytes })
    }
  }

  @Test func `a restored queue goes on after the ordinals that it had`() {
    var before = queue([[set("k", 1)], [set("l", 1)]])
    var after = DraftQueue()
    for draft in before.drafts { after.restore(draft) }
    #expect(after.isSaved && after.drafts == before.drafts && after.bytes == before.bytes)
    let operations = [set("k", 2)]
    #expect(
      after.add(operations, clock: clock(3), limit: limit)
        == before.add(operations, clock: clock(3), limit: limit))
    after.add([set("m", 1)], clock: clock(4), limit: limit)
    #expect(after.drafts.map(\.ordinal) == [1, 2, 3])
  }

  @Test func `drafts from a reading on are stamped again, in the order of their stamps`() {
    var queue = DraftQueue()
    // The first took the place of an older one later than the second was written.
    for (ordinal, number) in [(1, 7), (2, 5), (3, 2)] {
      queue.restore(
        Draft(
          ordinal: UInt64(ordinal), clock: clock(number), operations: [set("k\(ordinal)", 1)]))
    }
    var keeper = TimeKeeper()
    keeper.update(at: Instant(wallMilliseconds: 500, monotonicMilliseconds: 0))
    queue.restamp(from: clock(5), with: &keeper)
    #expect(queue.drafts[2].clock == clock(2))
    #expect(queue.drafts[1].clock < queue.drafts[0].clock)
    #expect(queue.save(in: store).count == 2)
  }
}

/// Refusals that a program has not taken.
@Suite struct RefusalListTests {
  private func draft(_ size: Int) -> Draft {
    Draft(ordinal: 1, clock: .zero, operations: [set("k", blob(size))])
  }

  @Test func `refusals are numbered once, counted, and taken from the oldest on`() {
    var list = RefusalList()
    let numbers = [10, 20, 30].map { list.add(draft($0), because: .quota).number }
    #expect(numbers == [1, 2, 3])
    #expect(list.bytes == [10, 20, 30].reduce(0) { $0 + draft($1).operations.keptBytes })
    #expect(!list.take(through: 2, in: TestWorld.store).isEmpty)
    #expect(list.refusals.map(\.number) == [3])
    #expect(list.bytes == draft(30).operations.keptBytes)
    #expect(list.take(through: 2, in: TestWorld.store).isEmpty)
    #expect(list.add(draft(1), because: .initialSync).number == 4)
    var restored = RefusalList()
    for refusal in list.refusals { restored.restore(refusal) }
    #expect(restored.refusals == list.refusals && restored.bytes == list.bytes)
    #expect(restored.add(draft(1), because: .quota).number == 5)
  }

  @Test func `numbers rise over restarts, also if none is left`() throws {
    var list = RefusalList()
    var rows: [UInt64: [UInt8]] = [:]
    for round in 0..<4 as Range<UInt64> {
      for number in [2 * round + 1, 2 * round + 2] {
        let refusal = list.add(draft(10), because: .quota)
        #expect(refusal.number == number)
        rows[number] = refusal.encoded()
      }
      for mutation in list.take(through: .max, in: TestWorld.store) {
        switch mutation {
        case .put(.store(_, .refusal(let number)), let bytes): rows[number] = bytes
        case .remove(.store(_, .refusal(let number))): rows[number] = nil
        default: Issue.record("\(mutation)")
        }
      }
      #expect(rows.count == 1)
      list = RefusalList()
      for (number, bytes) in rows {
        list.restore(try #require(Refusal(number: number, decoding: bytes)))
      }
      #expect(list.refusals.isEmpty && list.bytes == 0)
    }
  }
}
