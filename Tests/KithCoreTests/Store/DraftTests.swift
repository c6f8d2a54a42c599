import KithCrypto
import Testing

@testable import KithCore

/// A later write of a key replaces its draft (`Docs/Protocol/drafts.md`).
@Suite struct DraftTests {
  /// Three devices that met; then device 2 is alone.
  private func apart(seed: UInt64, policy: Policy) throws -> TestWorld {
    let world = try TestWorld(devices: 3, seed: seed, policy: policy)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    return world
  }

  /// The others write, then device 2 meets them.
  private func meet(_ operations: [KithCore.Operation], in world: TestWorld) {
    world.connect(0, 1)
    world.settle()
    world.write(operations, on: 0)
    world.settle()
    world.connect(1, 2)
    world.settle()
  }

  private func refused(in world: TestWorld) -> [[KithCore.Operation]] {
    world.devices[2].replica.refusals(of: TestWorld.store).map(\.operations)
  }

  @Test func `rows that cannot be read are not used again`() {
    var drafts = Drafts()
    drafts.restore(nil, from: 2)
    drafts.add(
      LocalWrite(clock: HybridTime(milliseconds: 7), operations: [set("a", 1), set("b", 2)]))
    let rows = drafts.save(in: TestWorld.store).map(\.key)
    #expect(rows == [.store(TestWorld.store, .draft(3)), .store(TestWorld.store, .draft(4))])
    var refusals = RefusalList()
    refusals.skip(5)
    #expect(refusals.lastNumber == 5)
  }

  @Test func `a write that is refused takes the draft that it replaced with it`() throws {
    let world = try apart(seed: 140, policy: Policy(totalBytes: 1_000))
    world.write([set("k", blob(100))], on: 2)
    world.write([set("k", blob(600))], on: 2)
    meet([set("theirs", blob(600))], in: world)
    #expect(world.text("k", on: 0) == nil)
    #expect(refused(in: world) == [[set("k", blob(600))]])
    world.checkConvergence("replaced")
  }

  @Test(arguments: [false, true])
  func `the other keys of a transaction stay, and are refused together`(isRestRefused: Bool) throws
  {
    let world = try apart(seed: 144, policy: Policy(totalBytes: 1_000))
    world.write([set("a", 1), set("b", 1), set("c", blob(isRestRefused ? 420 : 20))], on: 2)
    world.write([set("a", blob(450))], on: 2)
    meet([set("theirs", blob(600))], in: world)
    let rest = [set("b", 1), set("c", blob(isRestRefused ? 420 : 20))]
    #expect(refused(in: world) == (isRestRefused ? [rest] : []) + [[set("a", blob(450))]])
    #expect(world.text("b", on: 0) == (isRestRefused ? nil : 1))
    #expect(world.text("a", on: 0) == nil)
    world.checkConvergence("the rest")
  }

  /// The first write made room for the second. The third replaced it, and needs less.
  @Test func `drafts that fit together were refused one after another`() throws {
    let world = try TestWorld(devices: 2, seed: 145, policy: Policy(totalBytes: 300))
    world.connectAll()
    world.settle()
    world.write([set("doc", blob(180))], on: 0)
    world.settle()
    world.disconnectAll()
    for operation in [set("doc", blob(10)), set("x", blob(220)), set("doc", blob(40))] {
      let id = world.write([operation], on: 0)
      #expect(world.devices[0].accepted.contains(id))
    }
    try world.restart(0)
    #expect(world.text("doc", on: 0) == blob(40) && world.text("x", on: 0) == blob(220))
    world.connectAll()
    world.settle()
    #expect(world.text("doc", on: 1) == blob(40) && world.text("x", on: 1) == blob(220))
    #expect(world.devices[0].replica.refusals(of: TestWorld.store).isEmpty)
    world.checkConvergence("together")
  }

  /// The first key of the transaction, which is refused, took the room of the other write.
  @Test func `a refused draft is tried again over those that stand`() throws {
    let world = try apart(seed: 146, policy: Policy(totalBytes: 300))
    let transaction = [set("a", blob(80)), set("b", blob(80))]
    for operations in [transaction, [set("c", blob(120))]] {
      let id = world.write(operations, on: 2)
      #expect(world.devices[2].accepted.contains(id))
    }
    meet([set("theirs", blob(150))], in: world)
    #expect(refused(in: world) == [transaction])
    #expect(world.text("c", on: 0) == blob(120) && world.text("a", on: 0) == nil)
    world.checkConvergence("again")
  }

  @Test(arguments: [false, true])
  func `of new keys, the one written last claims its room last`(restarts: Bool) throws {
    let policy = Policy(totalBytes: 300, keys: 10, keyBytes: 64, valueBytes: 300)
    let world = try apart(seed: 142, policy: policy)
    world.write([set("k", blob(97))], on: 2)
    world.write([set("m", blob(77))], on: 2)
    world.write([set("k", blob(90))], on: 2)
    #expect(world.devices[2].disk.stores[TestWorld.store]?.drafts.count == 2)
    if restarts { try world.restart(2) }
    // With theirs there is room for either of the two keys.
    meet([set("other", blob(131))], in: world)
    world.connectAll()
    world.settle()
    #expect(world.text("m", on: 1) == blob(77))
    #expect(refused(in: world) == [[set("k", blob(90))]])
    world.checkInvariants("the room")
    world.checkConvergence("the room")
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

/// The drafts alone: which a write replaces, and that storage follows.
@Suite struct DraftsTests {
  private let store = TestWorld.store

  /// The contents of storage after some mutations.
  private func applied(_ mutations: [Mutation], to disk: [UInt64: [UInt8]]) -> [UInt64: [UInt8]] {
    var disk = disk
    for mutation in mutations {
      switch mutation {
      case .put(.store(_, .draft(let row)), let bytes): disk[row] = bytes
      case .remove(.store(_, .draft(let row))): disk[row] = nil
      default: Issue.record("\(mutation) is not about drafts")
      }
    }
    return disk
  }

  private func restored(_ disk: [UInt64: [UInt8]]) throws -> Drafts {
    var drafts = Drafts()
    for (row, bytes) in disk {
      let draft: Draft = try #require(Draft(decoding: bytes))
      drafts.restore(draft, from: row)
    }
    return drafts
  }

  private func clock(_ number: Int) -> HybridTime {
    HybridTime(milliseconds: 1_000 + UInt64(number))
  }

  private func drafts(_ writes: [[KithCore.Operation]]) -> Drafts {
    var drafts = Drafts()
    for (number, operations) in writes.enumerated() {
      drafts.add(LocalWrite(clock: clock(number), operations: operations))
    }
    return drafts
  }

  /// Transactions, and what is left of them.
  @Test(
    arguments: [
      ([], []),
      ([[set("k", 1)], [set("k", 2)]], [[set("k", 2)]]),
      ([[set("k", 1)], [set("l", 1)], [set("k", blob(5))]], [[set("l", 1)], [set("k", blob(5))]]),
      ([[set("k", 1)], [remove("k")]], [[remove("k")]]),
      ([[set("l", 1), set("k", 1)]], [[set("k", 1), set("l", 1)]]),
      (
        [[set("k", 1), set("l", 1), set("m", 1)], [set("l", 2)]],
        [[set("k", 1), set("m", 1)], [set("l", 2)]]
      ),
      (
        [[set("k", 1), set("l", 1)], [set("l", 2), set("m", 2)], [remove("m")]],
        [[set("k", 1)], [set("l", 2)], [remove("m")]]
      ),
    ] as [([[KithCore.Operation]], [[KithCore.Operation]])])
  func `a write replaces the drafts of its keys`(
    writes: [[KithCore.Operation]], left: [[KithCore.Operation]]
  ) {
    let drafts = drafts(writes)
    #expect(drafts.transactions.map(\.operations) == left)
    let clocks = drafts.transactions.map(\.clock)
    #expect(clocks == clocks.sorted())
    #expect(drafts.count == left.joined().count)
  }

  @Test func `storage holds exactly the drafts once their mutations are committed`() throws {
    var random = SeededEntropy(seed: 12)
    var drafts = Drafts()
    var disk: [UInt64: [UInt8]] = [:]
    for step in 0..<2_000 {
      let keys = ["a", "b", "c", "d"].shuffled(using: &random).prefix(
        Int.random(in: 1...2, using: &random))
      switch Int.random(in: 0..<10, using: &random) {
      case 0: drafts.retain(only: Array(drafts.transactions.dropFirst()))
      case 1: drafts[Key(keys[0])] = nil
      case 2:
        disk = applied(drafts.removeAll(in: store), to: disk)
        #expect(disk.isEmpty && drafts.isEmpty)
      default:
        drafts.add(LocalWrite(clock: clock(step), operations: keys.map { set($0, 1) }))
      }
      guard Bool.random(using: &random) else { continue }
      disk = applied(drafts.save(in: store), to: disk)
      #expect(disk.count == drafts.count && drafts.isSaved && drafts.save(in: store).isEmpty)
      if Bool.random(using: &random) {
        let again = try restored(disk)
        #expect(again.isSaved && again.byKey == drafts.byKey)
        drafts = again
      }
    }
  }

  @Test func `a key keeps its row, and no other key gets it`() throws {
    var drafts = drafts([[set("k", 1), set("l", 1)]])
    var disk = applied(drafts.save(in: store), to: [:])
    drafts = try restored(disk)
    drafts.add(LocalWrite(clock: clock(3), operations: [set("k", 2)]))
    #expect(drafts.save(in: store).map(\.key) == [.store(store, .draft(1))])
    drafts["k"] = nil
    drafts.add(LocalWrite(clock: clock(4), operations: [set("m", 1)]))
    disk = applied(drafts.save(in: store), to: disk)
    #expect(disk.keys.sorted() == [2, 3])
  }

  @Test func `drafts from a reading on are stamped again, each transaction with one stamp`() {
    var drafts = drafts([[set("early", 1)], [set("k", 1), set("l", 1)], [set("m", 1)]])
    _ = drafts.save(in: store)
    var keeper = TimeKeeper()
    keeper.update(at: Instant(wallMilliseconds: 500, monotonicMilliseconds: 0))
    drafts.restamp(from: clock(1), with: &keeper)
    #expect(drafts["early"]?.clock == clock(0))
    #expect(drafts["k"]?.clock == drafts["l"]?.clock)
    #expect(drafts["k"]?.clock ?? .zero < drafts["m"]?.clock ?? .zero)
    #expect(drafts.save(in: store).count == 3)
  }
}

/// The newest refusals that a program has not taken.
@Suite struct RefusalListTests {
  private let store = TestWorld.store

  private func write(_ size: Int) -> LocalWrite {
    LocalWrite(clock: .zero, operations: [set("k", blob(size))])
  }

  private func apply(_ mutations: [Mutation], to rows: inout [UInt64: [UInt8]]) {
    for mutation in mutations {
      switch mutation {
      case .put(.store(_, .refusal(let number)), let bytes): rows[number] = bytes
      case .remove(.store(_, .refusal(let number))): rows[number] = nil
      default: Issue.record("\(mutation)")
      }
    }
  }

  private func restored(_ rows: [UInt64: [UInt8]]) throws -> RefusalList {
    var list = RefusalList()
    for (number, bytes) in rows.sorted(by: { $0.key < $1.key }) {
      list.restore(try #require(Refusal(number: number, decoding: bytes)))
    }
    return list
  }

  @Test func `the newest are kept, taken from the oldest on, and restored`() throws {
    var random = SeededEntropy(seed: 13)
    var list = RefusalList()
    var rows: [UInt64: [UInt8]] = [:]
    var last: UInt64 = 0
    for _ in 0..<500 {
      if Int.random(in: 0..<6, using: &random) > 0 {
        let size = Int.random(in: 0...900, using: &random)
        apply(list.add(write(size), because: .quota, limit: 4_000, in: store), to: &rows)
        last += 1
        #expect(list.refusals.last?.number == last)
        #expect(list.bytes <= 4_000)
      } else {
        let number = list.refusals.randomElement(using: &random)?.number ?? .max
        apply(list.take(through: number, in: store), to: &rows)
        #expect(list.refusals.allSatisfy { $0.number > number })
      }
      let numbers = list.refusals.map(\.number)
      #expect(numbers == Array((last + 1 - UInt64(numbers.count))..<(last + 1)))
      #expect(list.bytes == list.refusals.reduce(0) { $0 + $1.keptBytes })
      if Bool.random(using: &random) {
        let again = try restored(rows)
        #expect(again.refusals == list.refusals && again.bytes == list.bytes)
        list = again
      }
    }
  }

  @Test func `the last refusal is kept, however large it is`() {
    var list = RefusalList()
    for size in [10, 500] {
      _ = list.add(write(size), because: .quota, limit: 100, in: store)
      #expect(list.refusals.map(\.operations) == [[set("k", blob(size))]])
    }
  }

  @Test func `numbers rise over restarts, also if none is left`() throws {
    var list = RefusalList()
    var rows: [UInt64: [UInt8]] = [:]
    for round in 1...4 as ClosedRange<UInt64> {
      for _ in 0..<2 {
        apply(list.add(write(10), because: .quota, limit: 10_000, in: store), to: &rows)
      }
      #expect(list.refusals.map(\.number) == [2 * round - 1, 2 * round])
      apply(list.take(through: .max, in: store), to: &rows)
      #expect(rows.count == 1)
      list = try restored(rows)
      #expect(list.refusals.isEmpty && list.bytes == 0)
    }
  }
}
