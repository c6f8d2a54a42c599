import KithCrypto
import Testing

@testable import KithCore

/// The bounds of drafts on a device that is alone, and of refusals that a program does not take.
@Suite struct DraftBoundsTests {
  private func store(_ index: Int, in world: TestWorld) throws -> StoreReplica {
    try #require(world.devices[index].replica.stores[TestWorld.store])
  }

  @Test func `a value that grows alone for ever is taken for ever, and kept once`() throws {
    let world = try TestWorld(devices: 2, seed: 170, policy: Policy(totalBytes: 10_000, keys: 4))
    for size in 0..<100 {
      world.write([set("k", blob(5_000 + size)), set("l\(size % 3)", 1)], on: 0)
      #expect(try store(0, in: world).drafts.count <= 4)
    }
    #expect(world.devices[0].refused.isEmpty)
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts.count == 4)
    try world.restart(0)
    #expect(world.text("k", on: 0) == blob(5_099))
    world.connectAll()
    world.settle()
    #expect(world.text("k", on: 1) == blob(5_099))
    #expect(try store(0, in: world).drafts.isEmpty)
  }

  @Test func `removals of keys that no device has are bounded, and none is refused`() throws {
    let world = try TestWorld(devices: 2, seed: 171, policy: Policy(totalBytes: 1_000, keys: 4))
    world.connectAll()
    world.settle()
    world.write([set("published", 1)], on: 0)
    world.settle()
    world.disconnectAll()
    world.write([remove("published"), set("stays", 1)], on: 0, flush: false)
    let limit = 4 * Limits.draftRemovalFactor
    let count = 3 * limit
    var searches = 0
    for number in 0..<count {
      world.write([set("k\(number)", 1)], on: 0, flush: false)
      let before = try store(0, in: world).drafts.removalsAtMost
      world.write([remove("k\(number)")], on: 0, flush: false)
      let drafts = try store(0, in: world).drafts
      #expect(drafts.count <= limit + 2)
      if drafts.removalsAtMost < before { searches += 1 }
    }
    #expect(world.devices[0].refused.isEmpty)
    // A search costs as much as there are drafts, so many writes must pass between two.
    #expect((1...count / (limit / 4)).contains(searches))
    let drafts = try store(0, in: world).drafts
    // The earliest are dropped, except that of a key which other devices have.
    let kept = (0..<count).filter { drafts[Key("k\($0)")] != nil }
    #expect(kept == Array((count - kept.count)..<count))
    #expect((limit - limit / 4...limit).contains(kept.count))
    #expect(drafts["published"] != nil && drafts["stays"] != nil)
    world.flush(0)
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts.count == drafts.count)
    try world.restart(0)
    #expect(Array(world.view(0).keys) == ["stays"])
    world.connectAll()
    world.settle()
    #expect(Array(world.view(1).keys) == ["stays"])
    world.checkConvergence("published")
  }

  @Test func `the newest refusals are kept if nobody takes them`() throws {
    let policy = Policy(totalBytes: 1_000, keys: 4)
    let world = try TestWorld(devices: 3, seed: 172, policy: policy)
    world.connectAll()
    world.settle()
    for round in 0..<20 {
      world.disconnect(0, 2)
      world.disconnect(1, 2)
      let id = world.write([set("mine", blob(600, 0x61 + UInt8(round)))], on: 2)
      #expect(world.devices[2].accepted.contains(id))
      world.write([set("theirs", blob(600))], on: 0)
      world.settle()
      world.connectAll()
      world.settle()
      world.write([remove("theirs")], on: 0)
      world.settle()
    }
    let refusals = world.devices[2].replica.refusals(of: TestWorld.store)
    let bytes = try store(2, in: world).refusals.bytes
    #expect(bytes <= policy.capacityWithKeys(factor: Limits.refusalFactor))
    #expect(refusals.last?.operations == [set("mine", blob(600, 0x61 + 19))])
    #expect(refusals.map(\.number) == Array(21 - UInt64(refusals.count)...20))
    #expect((4..<20).contains(refusals.count))
    try world.restart(2)
    #expect(world.devices[2].replica.refusals(of: TestWorld.store) == refusals)
    // Of a full list only the numbers tell that there are new ones.
    func last() -> UInt64? { world.devices[2].replica.status().stores.first?.lastRefusal }
    #expect(last() == 20)
    world.perform(.takeRefusals(TestWorld.store, through: 20), on: 2)
    #expect(try store(2, in: world).refusals.bytes == 0)
    try world.restart(2)
    #expect(last() == 20)
    world.connectAll()
    world.settle()
    world.checkConvergence("taken")
  }
}

/// A store keeps drafts, refusals and past values within the bounds, also under the longest keys.
@Suite struct LongKeyTests {
  private let policy = Policy(totalBytes: 1_000, keys: 8, keyBytes: 1_024)

  /// Eight values that fill the store, under keys of all the bytes that a key may have.
  private func full(_ value: PropertyListValue) -> [KithCore.Operation] {
    (0..<8).map { set(String(repeating: "\($0)", count: 1_024), value) }
  }

  @Test func `each value of a full store, written alone and refused, is told`() throws {
    let world = try TestWorld(devices: 3, seed: 173, policy: policy)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    let mine = full(blob(120))
    for operation in mine {
      let id = world.write([operation], on: 2)
      #expect(world.devices[2].accepted.contains(id))
    }
    world.connect(0, 1)
    world.settle()
    world.write((0..<8).map { set("theirs \($0)", 1) }, on: 0)
    world.settle()
    world.connect(1, 2)
    world.settle()
    #expect(
      world.devices[2].replica.refusals(of: TestWorld.store).map(\.operations) == mine.map { [$0] })
  }

  @Test func `the value of each key of a full store is kept once all change`() throws {
    let world = try TestWorld(devices: 2, seed: 174, policy: policy)
    world.connectAll()
    world.settle()
    world.write(full(blob(120)), on: 0)
    world.write(full(1), on: 0)
    let past = world.devices[0].replica.history(of: TestWorld.store, key: nil, limit: 8)
    #expect(past.map(\.value) == Array(repeating: blob(120), count: 8))
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
