import KithCrypto
import Testing

@testable import KithCore

/// Wrong clocks among devices that exchange stores: scenes of `Docs/Decisions/clocks.md`.
@Suite struct GenerationTests {
  private static let hour: Int64 = 3_600_000
  private static let threeYears: Int64 = 3 * 31_557_600_000

  private func world(devices: Int = 2, seed: UInt64) throws -> TestWorld {
    let world = try TestWorld.connected(devices: devices, seed: seed)
    world.disconnectAll()
    return world
  }

  private func setClock(_ error: Int64, isSynchronised: Bool, on index: Int, in world: TestWorld) {
    world.clockErrors[index] = error == 0 ? nil : error
    world.perform(.clockStatus(isSynchronised: isSynchronised), on: index)
  }

  private func meet(_ one: Int, _ other: Int, in world: TestWorld) {
    world.connect(one, other)
    world.settle()
    world.disconnect(one, other)
  }

  private func generation(_ index: Int, in world: TestWorld) -> UInt8 {
    world.devices[index].replica.timeKeeper.generation
  }

  private func check(_ world: TestWorld, _ comment: Comment) throws {
    for _ in 0..<3 {
      world.connectAll()
      world.settle()
      world.advance(milliseconds: 31_000)
    }
    world.settle()
    world.checkInvariants(comment)
    world.checkConvergence(comment)
    try world.checkDisks(comment)
    for device in world.devices {
      #expect(device.replica.counters.divergences == 0, "\(comment): a divergence")
      #expect(device.replica.counters.quarantined == 0, "\(comment): something was quarantined")
    }
  }

  @Test func `a device that is certain of another time than it uses starts no generation`() throws {
    let world = try world(devices: 3, seed: 620)
    for index in 0...1 { world.clockErrors[index] = Self.threeYears }
    world.write([set("a", 0)], on: 0)
    meet(0, 1, in: world)
    setClock(0, isSynchronised: true, on: 2, in: world)
    for round in 1...30 {
      world.write([set("a", .integer(Int64(round)))], on: 0)
      meet(0, 1, in: world)
      meet(0, 2, in: world)
      world.advance(milliseconds: 1_000)
    }
    for index in 0...2 { #expect(generation(index, in: world) == 1) }
  }

  @Test func `two synchronised clocks that contradict do not use the generations up`() throws {
    let world = try world(devices: 3, seed: 621)
    setClock(0, isSynchronised: true, on: 0, in: world)
    setClock(-2 * Self.hour, isSynchronised: true, on: 1, in: world)
    for round in 0..<60 {
      let other = round % 2
      world.write([set("a", .integer(Int64(round)))], on: other)
      // It runs anew each time, and so forgets what it heard.
      try world.restart(2)
      meet(2, other, in: world)
      world.advance(milliseconds: 200_000)
    }
    #expect(generation(2, in: world) == world.devices[2].replica.timeKeeper.generationLimit)
    #expect(generation(2, in: world) == 20)
    #expect(world.devices[2].reports.contains(.noGenerationLeft(20)))
  }

  /// With one minute for publishing clocks, as for a peer's time, the last would hear nothing while
  /// the first writes.
  @Test func `three devices, each a minute ahead of the next, exchange at once`() throws {
    let world = try world(devices: 3, seed: 622)
    world.clockErrors = [0: 59_000, 2: -59_000]
    world.connect(0, 1)
    world.connect(1, 2)
    world.settle()
    for round in 1...100 {
      world.write([set("a", .integer(Int64(round)))], on: 0)
      world.settle()
      #expect(world.text("a", on: 2) == .integer(Int64(round)))
      world.advance(milliseconds: 1_000)
      world.settle()
    }
    #expect(world.devices[2].closed.isEmpty)
    #expect(!world.devices[2].replica.timeKeeper.isWorthless)
    world.checkInvariants("a minute ahead")
  }

  @Test func `a generation is told, and what was ahead is taken then`() throws {
    let world = try world(devices: 3, seed: 624)
    for index in 0...1 { setClock(20 * Self.hour, isSynchronised: true, on: index, in: world) }
    world.write([set("a", "ahead")], on: 0)
    meet(0, 1, in: world)
    #expect(world.text("a", on: 1) == "ahead")
    // It has nothing to write.
    setClock(0, isSynchronised: true, on: 0, in: world)
    #expect(generation(0, in: world) == 2)
    #expect(world.devices[0].replica.counters.generations == 1)
    meet(0, 2, in: world)
    #expect(generation(2, in: world) == 2)
    #expect(world.text("a", on: 2) == "ahead")
    // A value that is written now is later, although its time is earlier.
    world.write([set("a", "since")], on: 2)
    setClock(0, isSynchronised: true, on: 1, in: world)
    try check(world, "told")
    #expect(world.text("a", on: 1) == "since")
    #expect(generation(1, in: world) == 2)
  }

  @Test func `a board without a clock exchanges with anybody`() throws {
    let world = try world(seed: 625)
    world.clockErrors[1] = -Int64(TestWorld.origin)
    try world.restart(1)
    world.write([set("a", 1)], on: 0)
    meet(0, 1, in: world)
    #expect(world.text("a", on: 1) == 1)
    #expect(world.devices[1].replica.clockStatus.follows == world.devices[0].keys.id)
  }

  @Test func `drafts are stamped again in order, also those a little ahead`() throws {
    let world = try world(seed: 626)
    world.write([set("old", "before")], on: 0)
    meet(0, 1, in: world)
    world.clockErrors[1] = 300_000
    world.write([set("a", "first"), set("b", "first")], on: 1)
    world.clockErrors[1] = 20 * Self.hour
    world.write([set("b", "second"), remove("old")], on: 1)
    let seen = world.view(1)
    setClock(0, isSynchronised: true, on: 1, in: world)
    #expect((world.view(1) == seen) as Bool)
    #expect(generation(1, in: world) == 1)
    let store = try #require(world.devices[1].replica.stores[TestWorld.store])
    let clocks = store.drafts.transactions.map(\.clock)
    #expect(clocks.count == 2)
    #expect(clocks == clocks.sorted())
    #expect(clocks.allSatisfy { $0.milliseconds <= world.now.wallMilliseconds })
    #expect(
      world.devices[1].disk.clock.milliseconds <= world.now.wallMilliseconds, "on the disk")
    try world.restart(1)
    #expect((world.view(1) == seen) as Bool)
    try check(world, "restamped")
    #expect(world.text("a", on: 0) == "first")
    #expect(world.text("b", on: 0) == "second")
    #expect(world.text("old", on: 0) == nil)
  }

  @Test func `a word that was made ahead is not outlived by an earlier one`() throws {
    let world = try world(devices: 3, seed: 627)
    // Nothing is published, but each process says what it covers.
    for index in 0...1 {
      world.clockErrors[index] = 20 * Self.hour
      try world.restart(index)
    }
    world.connect(0, 1)
    world.settle()
    world.advance(milliseconds: 1_000)
    world.settle()
    world.disconnectAll()
    for index in 0...2 { setClock(0, isSynchronised: true, on: index, in: world) }
    world.connect(0, 1)
    world.connect(0, 2)
    world.settle()
    world.write([set("a", 1)], on: 2)
    for _ in 0..<10 {
      world.settle()
      world.advance(milliseconds: 250)
    }
    #expect(world.text("a", on: 1) == 1)
    // Of the first device this one hears by the other alone.
    let holders = world.devices[2].replica.holders(of: TestWorld.store)
    #expect(holders[world.devices[1].keys.id] == true)
  }

  /// Members took it in an earlier generation and passed it on, and joiners refused it.
  @Test(arguments: [1, 2] as [UInt8], [true, false])
  func `a change set after 2200 kept every new device out`(
    generation: UInt8, hasEntries: Bool
  ) throws {
    let world = try world(seed: 640)
    let last = Limits.lastWallMilliseconds
    let plaintexts = try ["a", "b"].map { try world.entry($0, on: 1).plaintext() }
    let start = HybridTime(generation: 2, milliseconds: world.instant(of: 0).wallMilliseconds)
    for index in 0...1 { world.devices[index].replica.timeKeeper.witness(start) }
    world.connectAll()
    world.settle()
    var late = try world.seal(
      [plaintexts[0]], by: 1, sequence: 1,
      clock: HybridTime(generation: generation, milliseconds: last + 1))
    if !hasEntries { late.stored.entries = [:] }
    for message in Batch(store: TestWorld.store, changeSets: [late]).messages() {
      #expect(InboundMessage(decoding: message, account: world.account) == nil)
    }
    // The last possible time is taken in an earlier generation, and keeps nobody out.
    let possible = try world.seal(
      [plaintexts[1]], by: 1, sequence: 2, clock: HybridTime(generation: 1, milliseconds: last))
    try world.hand([possible], above: 0, from: 1, to: 0)
    #expect(try world.covered(of: 1, on: 0) == 2)
    try world.join(by: 0)
    #expect(world.view(2) == world.view(0))
    #expect(world.view(2).count == 1)
  }

  /// Peers refuse a change set after 2200, also one that carries entries over.
  @Test func `at the end of time a device carries nothing over`() throws {
    let world = try TestWorld.connected(devices: 2, seed: 741)
    world.write([set("a", 1)], on: 1)
    world.settle()
    world.disconnectAll()
    let last = HybridTime(
      generation: world.devices[0].replica.timeKeeper.generation,
      milliseconds: Limits.lastWallMilliseconds)
    world.devices[0].replica.timeKeeper.witness(HybridTime(rawValue: last.rawValue | 0xfff))
    world.revoke(1, by: 0)
    world.settle()
    let log = try #require(world.devices[0].replica.stores[TestWorld.store]?.log)
    #expect(log.holdsWithheld)
    #expect(log.changeSets.values.allSatisfy { $0.clock.isPossible })
  }

  @Test func `a clock that steps during a session ends the exchange`() throws {
    let world = try world(seed: 628)
    world.connectAll()
    world.settle()
    world.clockErrors[0] = 300_000
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(world.links.isEmpty)
    #expect(world.devices[1].closed == [.clocksDiffer])
    #expect(
      world.devices[1].reports.contains { if case .clocksDiffer = $0 { true } else { false } })
    // Right again, it is seen by what is told, in the same session.
    world.connectAll()
    world.settle()
    #expect(world.devices[0].replica.exchangingSessions.isEmpty)
    world.clockErrors[0] = nil
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(!world.devices[0].replica.exchangingSessions.isEmpty)
    #expect(world.devices[1].replica.clockStatus.differences.isEmpty)
  }

  @Test func `a person's word counts once`() throws {
    let world = try world(devices: 2, seed: 629)
    for round: UInt8 in 1...2 {
      for index in 0...1 { world.clockErrors[index] = 20 * Self.hour }
      world.write([set("a", .integer(Int64(round)))], on: 0)
      meet(0, 1, in: world)
      world.clockErrors = [:]
      // Until then they follow each other, for their own clocks are before their readings.
      world.advance(milliseconds: Limits.memberTimeMilliseconds)
      #expect(generation(0, in: world) == round)
      #expect(world.devices[0].replica.clockStatus.stampsAheadMilliseconds > Self.hour)
      world.perform(.acceptTime, on: 0)
      #expect(generation(0, in: world) == round + 1)
      world.perform(.acceptTime, on: 0)
      #expect(generation(0, in: world) == round + 1)
    }
    try check(world, "accepted")
    #expect(world.text("a", on: 1) == 2)
  }

  /// A crash before the commit leaves all as it was; after it there is nothing to do.
  @Test func `a generation that was started is there after a crash`() throws {
    let world = try world(seed: 630)
    for index in 0...1 { world.clockErrors[index] = Self.threeYears }
    world.write([set("a", "ahead")], on: 0)
    meet(0, 1, in: world)
    let before = world.devices[0].disk
    setClock(0, isSynchronised: true, on: 0, in: world)
    #expect(world.devices[0].disk.clock.generation == 2)
    try world.restart(0)
    #expect(generation(0, in: world) == 2)
    world.devices[0].disk = before
    try world.restart(0)
    setClock(0, isSynchronised: true, on: 0, in: world)
    #expect(generation(0, in: world) == 2)
    setClock(0, isSynchronised: true, on: 1, in: world)
    try check(world, "crashed")
    #expect(world.text("a", on: 1) == "ahead")
  }

  @Test func `a write made ahead wins over one that did not know it`() throws {
    let world = try world(seed: 631)
    world.clockErrors[0] = 20 * Self.hour
    world.write([set("a", "ahead")], on: 0)
    meet(0, 1, in: world)
    world.clockErrors[1] = 20 * Self.hour
    meet(0, 1, in: world)
    setClock(0, isSynchronised: true, on: 0, in: world)
    setClock(0, isSynchronised: true, on: 1, in: world)
    try check(world, "won")
    #expect(world.text("a", on: 1) == "ahead")
  }

  @Test func `behind, a write that lost is told, and the next one wins`() throws {
    let world = try world(seed: 632)
    world.write([set("old", "before")], on: 0)
    meet(0, 1, in: world)
    world.clockErrors[1] = -3 * Self.threeYears
    try world.restart(1)
    world.write([set("lone", "of 1")], on: 1)
    world.now.wallMilliseconds += 10_000
    world.write([set("k", "of 0")], on: 0)
    // The hybrid clock never goes back, so it still supersedes what it had seen.
    world.write([set("old", "of 1")], on: 1)
    world.write([set("k", "of 1")], on: 1)
    setClock(0, isSynchronised: true, on: 1, in: world)
    try check(world, "behind")
    #expect(world.text("lone", on: 0) == "of 1")
    #expect(world.text("old", on: 0) == "of 1")
    #expect(world.text("k", on: 1) == "of 0")
    world.write([set("k", "next")], on: 1)
    world.settle()
    #expect(world.text("k", on: 0) == "next")
    #expect(generation(1, in: world) == 1)
  }
}
