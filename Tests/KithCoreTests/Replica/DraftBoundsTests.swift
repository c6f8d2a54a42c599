import KithCrypto
import Testing

@testable import KithCore

/// The bounds of drafts on a device that is alone, and of refusals that a program does not take.
@Suite struct DraftBoundsTests {
  private func store(_ index: Int, in world: TestWorld) throws -> StoreReplica {
    try #require(world.devices[index].replica.stores[TestWorld.store])
  }

  @Test func `a value that grows alone for ever is taken for ever, and kept once`() throws {
    let policy = Policy(totalBytes: 10_000, keys: 4)
    let world = try TestWorld(devices: 2, seed: 170, policy: policy)
    for size in 0..<100 {
      // Each may be refused though the one before stays; there are too many to keep all.
      world.write([set("k", blob(5_000 + size))], on: 0)
      #expect(try store(0, in: world).drafts.bytes <= policy.room(factor: Limits.draftFactor))
    }
    #expect(world.devices[0].refused.isEmpty)
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts.count ?? 0 < 20)
    let counted = try store(0, in: world).drafts.drafts.reduce(0) { $0 + $1.operations.keptBytes }
    #expect(try store(0, in: world).drafts.bytes == counted)
    try world.restart(0)
    #expect(try store(0, in: world).drafts.bytes == counted)
    #expect(world.text("k", on: 0) == blob(5_099))
    world.connectAll()
    world.settle()
    #expect(world.text("k", on: 1) == blob(5_099))
    #expect(try store(0, in: world).drafts.bytes == 0)
  }

  @Test func `drafts that none rewrites are bounded, and a removal is taken all the same`() throws {
    let policy = Policy(totalBytes: 1_000, keys: 4)
    let limit = policy.room(factor: Limits.draftFactor)
    let world = try TestWorld(devices: 2, seed: 171, policy: policy)
    world.write([set("stays", 1), set("stays too", 1)], on: 0)
    var refusal: WriteError?
    for number in 0..<200 where refusal == nil {
      let before = (world.view(0), world.devices[0].disk.stores)
      let id = world.write([set("k\(number)", 1)], on: 0)
      refusal = world.devices[0].refused[id]
      if refusal == nil {
        world.write([remove("k\(number)")], on: 0)
      } else {
        #expect(world.view(0) == before.0)
        #expect(world.devices[0].disk.stores == before.1)
      }
    }
    guard case .tooManyDrafts(let bytes, limit) = refusal else {
      Issue.record("not refused, but \(String(describing: refusal))")
      return
    }
    #expect(bytes > limit)
    let removal = world.write([remove("stays")], on: 0)
    #expect(world.devices[0].accepted.contains(removal))
    #expect(Array(world.view(0).keys) == ["stays too"])
    // Once they are published there is room again.
    world.connectAll()
    world.settle()
    world.write([set("after", 1)], on: 0)
    world.settle()
    #expect(world.text("after", on: 1) == 1)
    world.checkConvergence("published")
  }

  @Test func `refusals that nobody takes are bounded, and none is forgotten for it`() throws {
    let policy = Policy(totalBytes: 1_000, keys: 4)
    let limit = policy.room(factor: Limits.draftFactor)
    let world = try TestWorld(devices: 3, seed: 172, policy: policy)
    world.connectAll()
    world.settle()
    var error: WriteError?
    var rounds = 0
    while error == nil, rounds < 60 {
      world.disconnect(0, 2)
      world.disconnect(1, 2)
      let id = world.write([set("mine", blob(600))], on: 2)
      error = world.devices[2].refused[id]
      world.write([set("theirs", blob(600))], on: 0)
      world.settle()
      world.connectAll()
      world.settle()
      world.write([remove("theirs")], on: 0)
      world.settle()
      if error == nil { rounds += 1 }
    }
    guard case .refusalsNotTaken(let bytes, limit) = error else {
      Issue.record("not refused, but \(String(describing: error))")
      return
    }
    #expect(bytes > limit)
    let refusals = world.devices[2].replica.refusals(of: TestWorld.store)
    #expect(refusals.map(\.number) == (1...UInt64(rounds)).map { $0 })
    try world.restart(2)
    #expect(try store(2, in: world).refusals.bytes == bytes)
    world.connectAll()
    world.settle()
    world.write([set("others write", 1)], on: 0)
    world.settle()
    let removal = world.write([remove("others write")], on: 2)
    #expect(world.devices[2].accepted.contains(removal))
    world.perform(.takeRefusals(TestWorld.store, through: UInt64(rounds)), on: 2)
    #expect(try store(2, in: world).refusals.bytes == 0)
    let id = world.write([set("mine", 1)], on: 2)
    #expect(world.devices[2].accepted.contains(id))
    world.settle()
    world.checkConvergence("taken")
  }
}

/// Data that must not grow so large that it cannot be passed on.
@Suite struct OversizedTests {
  @Test func `a change set that filled a message was kept and could not be passed on`() throws {
    let world = try TestWorld(devices: 3, seed: 180)
    world.connect(0, 1)
    world.settle()
    // No entry at all: it would be quarantined, kept and passed on, would it fit.
    var size = Limits.messageBytes - 400
    var batch = Batch(store: TestWorld.store)
    repeat {
      let changeSet = try world.seal([[UInt8](repeating: 0xff, count: size)], by: 1, sequence: 1)
      batch.changeSets = [changeSet]
      size += Limits.messageBytes - (batch.messages().map(\.count).max() ?? 0)
    } while batch.messages()[0].count != Limits.messageBytes
    #expect(InboundMessage(decoding: batch.messages()[0], account: world.account) == nil)
  }

  @Test func `the largest change set is taken, and passed on with all covers of a store`() throws {
    let world = try TestWorld(devices: 1, seed: 181)
    func changeSet(_ size: Int) throws -> ChangeSet {
      try world.seal([[UInt8](repeating: 0xff, count: size)], by: 0, sequence: 1)
    }
    let overhead = try changeSet(1_000).stored
    let most =
      Limits.changeSetBoxBytes - overhead.header.count - (overhead.entries[0]?.count ?? 0) + 1_000
    let covers = (0..<UInt64(Limits.chainsPerStore)).map {
      Cover(
        chain: ChainID(device: world.devices[0].keys.id, incarnation: Incarnation(rawValue: $0)),
        from: 1 << 52, through: 1 << 53)
    }
    let largest = Batch(
      store: TestWorld.store, changeSets: [try changeSet(most)], covers: covers)
    for message in largest.messages() {
      #expect(InboundMessage(decoding: message, account: world.account) != nil)
    }
    let larger = Batch(store: TestWorld.store, changeSets: [try changeSet(most + 1)])
    #expect(InboundMessage(decoding: larger.messages()[0], account: world.account) == nil)
  }

  @Test func `covers that do not fit beside change sets go in a message of their own`() throws {
    let world = try TestWorld(devices: 1, seed: 182)
    let changeSet = try world.seal(
      [[UInt8](repeating: 0, count: 1_000_000)], by: 0, sequence: 1)
    let device = world.devices[0].keys.id
    let covers = (0..<1_024).map {
      Cover(
        chain: ChainID(device: device, incarnation: Incarnation(rawValue: $0)), from: 1 << 52,
        through: 1 << 53)
    }
    let batch = Batch(store: TestWorld.store, changeSets: [changeSet], covers: covers)
    let messages = batch.messages()
    #expect(messages.count == 2)
    let parts = messages.compactMap { message -> BatchPart? in
      guard case .batch(let part)? = InboundMessage(decoding: message, account: world.account)?.body
      else { return nil }
      return part
    }
    #expect(parts.map(\.hasMore) == [true, false])
    #expect(parts.map(\.changeSets.count) == [1, 0])
    #expect(parts.flatMap(\.covers) == covers)
    var alone = batch
    alone.changeSets = []
    #expect(alone.messages().count == 1)
  }
}

/// Refusals: a transaction that was accepted and could not be published after all
/// (`Docs/Protocol/drafts.md`, "Re-checking", promise 3).
@Suite struct RefusalTests {
  @Test func `a refusal outlives restarts until the program has taken it`() throws {
    let world = try TestWorld(devices: 3, seed: 130, policy: Policy(totalBytes: 1_000))
    world.connectAll()
    world.settle()
    world.disconnectAll()
    let lost = world.write([set("mine", blob(600)), remove("nothing")], on: 2)
    let kept = world.write([set("small", 1)], on: 2)
    world.connect(0, 1)
    world.settle()
    world.write([set("theirs", blob(600))], on: 0)
    world.settle()
    world.connect(1, 2)
    world.settle()
    world.checkConvergence("refused")
    #expect(world.text("small", on: 0) == 1)
    #expect(world.devices[2].durable.isSuperset(of: [lost, kept]))
    for _ in 0..<2 {
      let refusals = world.devices[2].replica.refusals(of: TestWorld.store)
      #expect(refusals.map(\.reason) == [.quota])
      #expect(refusals.map(\.number) == [1])
      #expect(refusals.first?.operations == [set("mine", blob(600))])
      try world.restart(2)
    }
    world.perform(.takeRefusals(TestWorld.store, through: 1), on: 2)
    #expect(world.devices[2].replica.refusals(of: TestWorld.store).isEmpty)
    try world.restart(2)
    #expect(world.devices[2].replica.refusals(of: TestWorld.store).isEmpty)
  }
}
