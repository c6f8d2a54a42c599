import KithCrypto
import Testing

@testable import KithCore

/// When drafts are published, and as what (`Docs/Protocol.md`, "Writing and publishing").
@Suite struct PublishingTests {
  /// Two or more devices that have met, apart again.
  private func apart(_ count: Int, seed: UInt64, policy: Policy = .standard) throws -> TestWorld {
    let world = try TestWorld(devices: count, seed: seed, policy: policy)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    return world
  }

  /// Change sets of a device that another holds.
  private func changeSets(of author: Int, on index: Int, in world: TestWorld) -> Int {
    let id = world.devices[author].keys.id
    return world.devices[index].disk.stores[TestWorld.store]?.changeSets.keys
      .count { $0.device == id } ?? 0
  }

  @Test func `nothing is published before the answer to the first have was applied`() throws {
    let world = try apart(2, seed: 100)
    world.write([set("theirs", 1)], on: 1)
    world.write([set("ours", 1)], on: 0)
    world.connect(0, 1)
    let session = try #require(world.links[[0, 1]]?.ends[0].session)
    func isAnswered() -> Bool {
      world.devices[0].replica.links[session]?[TestWorld.store].isPulled == true
    }
    var steps = 0
    while !isAnswered(), steps < 100 {
      world.write([set("step \(steps)", 1)], on: 0)
      #expect(world.devices[0].replica.hasUnpublished(TestWorld.store), "published at \(steps)")
      #expect(changeSets(of: 0, on: 0, in: world) == 0)
      for case .batch(let part) in world.underWay(from: 0, to: 1) {
        #expect(part.changeSets.isEmpty, "sent at \(steps)")
      }
      #expect(world.deliverOne())
      steps += 1
    }
    #expect(isAnswered())
    world.settle()
    #expect(!world.devices[0].replica.hasUnpublished(TestWorld.store))
    world.checkConvergence("published")
  }

  @Test func `a draft older than what it meets is dropped, and its program hears of it`() throws {
    let world = try apart(3, seed: 101)
    world.write([set("k", "old"), set("other", 1)], on: 0)
    world.write([set("k", "older still")], on: 0)
    world.now.wallMilliseconds += 1_000
    world.connect(1, 2)
    world.settle()
    world.write([set("k", "new")], on: 1)
    world.settle()
    world.devices[0].viewChanges = []
    world.connect(0, 1)
    world.settle()
    world.checkConvergence("superseded")
    #expect(world.text("k", on: 0) == "new")
    #expect(world.text("other", on: 1) == 1)
    #expect(world.devices[0].viewChanges.map(\.reason) == [.externalChange])
    #expect(world.devices[0].viewChanges.first?.superseded == ["k"])
    #expect(world.devices[0].replica.refusals(of: TestWorld.store).isEmpty)
    // Of the two drafts nothing was published but the one key that stood.
    let published = try world.devices[1].disk.stores[TestWorld.store]?.changeSets
      .filter { $0.key.device == world.devices[0].keys.id }
      .map { try ChangeSetHeader(decoding: $0.value.header).entryDigests.count }
    #expect(published == [1])
  }

  @Test func `a sequence is given once, in spite of a restart`() throws {
    let world = try apart(2, seed: 102)
    for number in 0..<3 {
      world.connect(0, 1)
      world.settle()
      world.write([set("k", .integer(Int64(number)))], on: 0)
      world.settle()
      try world.restart(0)
    }
    world.connect(0, 1)
    world.settle()
    let chain = try world.chain(of: 0)
    #expect(world.devices[1].replica.stores[TestWorld.store]?.log.chains[chain]?.received == 3)
    #expect(world.devices[1].replica.counters.forks == 0)
    #expect(world.text("k", on: 1) == 2)
    world.checkConvergence("restarted")
  }

  @Test func `after a restart with the clock set back, later writes are later still`() throws {
    let world = try apart(2, seed: 103)
    world.write([set("k", "draft")], on: 0)
    let draft = try #require(
      world.devices[0].replica.stores[TestWorld.store]?.drafts["k"]?.clock)
    world.clockErrors[0] = -30_000
    try world.restart(0)
    world.write([set("other", 1)], on: 0)
    let clocks = world.devices[0].replica.stores[TestWorld.store]?.drafts.transactions.map(\.clock)
    #expect(clocks?.last ?? .zero > draft)
    // Entries of other devices count as well: a write that has seen one is later.
    world.clockErrors = [0: 0, 1: 30_000]
    world.connect(0, 1)
    world.settle()
    world.write([set("k", "ahead")], on: 1)
    world.settle()
    try world.restart(0)
    world.connect(0, 1)
    world.settle()
    world.write([set("k", "seen")], on: 0)
    world.settle()
    #expect(world.text("k", on: 1) == "seen")
    world.checkConvergence("set back")
  }

  @Test func `the newest header of a chain is kept when nothing else of it is`() throws {
    let world = try apart(2, seed: 104)
    world.connect(0, 1)
    world.settle()
    world.write([set("k", 1)], on: 0)
    world.settle()
    world.write([set("k", 2)], on: 1)
    world.settle()
    for index in 0...1 { #expect(changeSets(of: 0, on: index, in: world) == 1) }
    try world.restart(1)
    #expect(try world.covered(of: 0, on: 1) == 1)
  }
}

/// When a device takes a new incarnation, and when it has none left.
@Suite struct IncarnationsTests {
  private func incarnations(_ range: Range<Int>) -> Set<Incarnation> {
    Set(range.map { Incarnation(rawValue: UInt64($0)) })
  }

  private func process(_ number: UInt8) -> ProcessID { ProcessID(Digest128 { $0[0] = number }) }

  @Test func `the first is no news, another is, and beyond the limit there is none`() {
    var incarnations = Incarnations()
    #expect(incarnations.current == nil && !incarnations.areSpent([]))
    let first = incarnations.renew(Incarnation(rawValue: 100), used: [])
    #expect(first == .first)
    #expect(incarnations.current == Incarnation(rawValue: 100))
    let limit = Limits.incarnations
    let another = incarnations.renew(
      Incarnation(rawValue: 101), used: self.incarnations(0..<limit - 1))
    #expect(another == .another)
    let none = incarnations.renew(Incarnation(rawValue: 102), used: self.incarnations(0..<limit))
    #expect(none == .noneLeft)
    #expect(incarnations.current == Incarnation(rawValue: 102), "so that a restart keeps it")
  }

  @Test func `the one in use does not count against the limit`() {
    let used = incarnations(0..<Limits.incarnations)
    #expect(!Incarnations(current: used.first).areSpent(used))
    #expect(Incarnations(current: Incarnation(rawValue: 100)).areSpent(used))
    #expect(Incarnations().areSpent(used))
  }

  @Test func `each process of a copy counts once, and not more than there are incarnations`() {
    var incarnations = Incarnations()
    let own = process(0)
    let met = (0...UInt8(Limits.incarnations) + 1).map {
      incarnations.noteClone(process($0), as: own)
    }
    #expect(met == [false] + Array(repeating: true, count: Limits.incarnations) + [false])
    let again = incarnations.noteClone(process(1), as: own)
    #expect(!again)
  }
}
