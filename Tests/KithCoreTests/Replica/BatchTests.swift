import KithCrypto
import Testing

@testable import KithCore

/// The answer to one `Have` is one batch: applied, counted and passed on in one step
/// (`Docs/Protocol.md`, "Batch").
@Suite struct BatchTests {
  /// A device that has been away while another published several change sets, which one batch of
  /// several messages carries; and what handing in each message did.
  private func catchUp(
    policy: Policy, seed: UInt64, _ missed: [[KithCore.Operation]],
    before: [KithCore.Operation] = []
  ) throws -> (world: TestWorld, steps: [[Effect]]) {
    let world = try TestWorld(devices: 3, seed: seed, policy: policy)
    world.connectAll()
    world.settle()
    if !before.isEmpty { world.write(before, on: 0) }
    world.settle()
    world.disconnect(0, 2)
    world.disconnect(1, 2)
    for operations in missed { world.write(operations, on: 0) }
    world.settle()
    world.connect(0, 2)
    let messages = Self.answers(to: world)
    var steps: [[Effect]] = []
    let session = try #require(world.links[[0, 2]]?.ends[0].session)
    for message in messages {
      let inbound = try #require(InboundMessage(decoding: message, account: world.account))
      steps.append(
        world.devices[2].replica.handle(.received(session, inbound), at: world.instant(of: 2)))
    }
    return (world, steps)
  }

  /// Delivers until device 0 has answered, and takes its batch out of the pipe.
  private static func answers(to world: TestWorld) -> [[UInt8]] {
    func isBatch(_ message: [UInt8]) -> Bool {
      if case .batch? = InboundMessage(decoding: message, account: world.account)?.body {
        true
      } else {
        false
      }
    }
    var taken: [[UInt8]] = []
    world.tamper = { from, to, message in
      guard from == 0, to == 2, isBatch(message) else { return message }
      taken.append(message)
      return nil
    }
    world.settle()
    world.tamper = nil
    return taken
  }

  private func views(_ effects: [Effect]) -> [ViewChange] {
    effects.compactMap { if case .view(let change) = $0 { change } else { nil } }
  }

  private func commits(_ effects: [Effect]) -> Int {
    effects.count { if case .persist = $0 { true } else { false } }
  }

  @Test func `a batch of several change sets and messages is one change and one commit`() throws {
    let policy = Policy(totalBytes: 4 << 20, keys: 10, valueBytes: 1 << 20)
    let missed = (0..<4).map { [set("k\($0)", blob(700_000))] }
    let (world, steps) = try catchUp(policy: policy, seed: 150, missed)
    #expect(steps.count == 5, "one for each change set, and one for the covers")
    for step in steps.dropLast() {
      #expect(views(step).isEmpty)
      #expect(commits(step) == 0)
    }
    let last = try #require(steps.last)
    #expect(views(last).map(\.reason) == [.externalChange])
    #expect(views(last).first?.changes.map(\.key) == ["k0", "k1", "k2", "k3"])
    #expect(commits(last) == 1)
    // One commit holds the change sets and the vector that covers them.
    for case .persist(let mutations) in last {
      #expect(
        mutations.count { if case .put(.store(_, .changeSet), _) = $0 { true } else { false } } == 4
      )
      #expect(
        mutations.count { if case .put(.store(_, .vector), _) = $0 { true } else { false } } == 1)
    }
    #expect(world.view(2).count == 4)
  }

  @Test func `a batch makes one change for each reason, and no state in between shows`() throws {
    // Shown one after the other, the first would hide the second before the third makes room.
    let (_, steps) = try catchUp(
      policy: Policy(totalBytes: 1_000, keys: 8), seed: 151,
      [[set("a", blob(300))], [set("b", blob(300))], [remove("a")], [set("c", blob(300))]],
      before: [set("z", blob(300))])
    let changes = steps.flatMap(views)
    #expect(changes.map(\.reason) == [.externalChange])
    #expect(changes.first?.changes.map(\.key) == ["b", "c"])
  }

  @Test func `a batch is passed on as a batch`() throws {
    let world = try TestWorld(devices: 3, seed: 152)
    world.connect(0, 1)
    world.connect(1, 2)
    world.settle()
    world.disconnect(0, 1)
    for number in 0..<5 { world.write([set("k\(number)", 1)], on: 0, flush: false) }
    world.flush(0)
    world.write([set("later", 1)], on: 0)
    world.devices[2].viewChanges = []
    world.connect(0, 1)
    world.settle()
    #expect(world.devices[2].viewChanges.map(\.changes.count) == [6])
    world.checkConvergence("passed on")
  }
}

/// Boxes are read from storage when they are sent, as they are at that place among the effects.
@Suite struct StoredBatchTests {
  /// The effects with which a device answers another that has nothing, and its disk.
  private func answer(_ world: TestWorld) throws -> [Effect] {
    world.connectAll()
    world.settle()
    world.write([set("a", 1), set("b", 2)], on: 0)
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 0 }?.session)
    let policy = try #require(world.devices[0].replica.usage(of: TestWorld.store)?.policy)
    let have = Have(
      number: 9, isWhole: true, listsAll: false,
      stores: [
        StoreHave(
          store: TestWorld.store, vector: [:], digest: nil, policy: policy)
      ])
    let message = try #require(have.messages().first)
    let inbound = try #require(InboundMessage(decoding: message, account: world.account))
    return world.devices[0].replica.handle(.received(session, inbound), at: world.instant(of: 0))
  }

  private func stored(_ effects: [Effect]) -> [StoredBatch] {
    effects.compactMap { effect in
      if case .sendStored(_, let batch) = effect { batch } else { nil }
    }
  }

  private func messages(
    _ batch: StoredBatch, from storage: any ReplicaStorage, missing expected: Int = 0
  ) throws -> [[UInt8]] {
    var messages: [[UInt8]] = []
    let missing = try batch.forEachMessage(from: storage) { messages.append($0) }
    #expect(missing == expected)
    return messages
  }

  private func part(_ message: [UInt8], _ world: TestWorld) throws -> BatchPart {
    guard case .batch(let part)? = InboundMessage(decoding: message, account: world.account)?.body
    else { throw ReplicaError.damagedRecord }
    return part
  }

  private func entries(_ message: [UInt8], _ world: TestWorld) throws -> Int {
    guard case .batch(let part) = InboundMessage(decoding: message, account: world.account)?.body
    else {
      Issue.record("no batch")
      return 0
    }
    return try part.changeSets.reduce(0) { sum, checked in
      guard case .sound(let changeSet) = checked else { throw ReplicaError.damagedRecord }
      return sum + changeSet.stored.entries.count
    }
  }

  @Test func `an answer is read from storage`() throws {
    let world = try TestWorld(devices: 2, seed: 320)
    let effects = try answer(world)
    let stored = stored(effects)
    #expect(stored.count == 1)
    let storage = MemoryStorage(world.devices[0].disk)
    let first = try #require(stored.first)
    let bytes = try #require(messages(first, from: storage).first)
    #expect(try entries(bytes, world) == 2)
    #expect(first.byteCount >= bytes.count)
  }

  @Test func `an entry that the same commit removes is sent as it was before`() throws {
    let world = try TestWorld(devices: 2, seed: 321)
    var round = try answer(world)
    world.perform(
      .write(WriteID(rawValue: 99), TestWorld.store, [set("a", 3)]), on: 0)
    let storage = MemoryStorage(world.devices[0].disk)
    let later = world.devices[0].replica.handle(.flush, at: world.instant(of: 0))
    round += later
    var mutations: [Mutation] = []
    for case .persist(let some) in round { mutations += some }
    #expect(
      mutations.contains { if case .remove(.store(_, .entry)) = $0 { true } else { false } },
      "the entry is superseded in the same round")
    let filled = try round.filled(from: storage)
    try storage.commit(mutations)
    #expect(filled.count == round.count)
    let batch = try #require(self.stored(filled).first)
    let message = try #require(messages(batch, from: storage).first)
    #expect(try entries(message, world) == 2)
    #expect(try part(message, world).covers.count == 1)
    // Without that it would lack the entry that its cover promises.
    let unfilled = try #require(self.stored(round).first)
    let lacking = try #require(messages(unfilled, from: storage, missing: 1).first)
    #expect(try entries(lacking, world) == 1)
    #expect(try part(lacking, world).covers.isEmpty)
  }

  @Test func `a batch covered chains of which storage lacked a change set`() throws {
    let world = try TestWorld(devices: 3, seed: 323)
    world.connect(0, 1)
    world.settle()
    // More than one message, so that what is missing is not in the one that covers.
    world.write([set("a", blob(700_000))], on: 0)
    world.write([set("b", blob(200_000))], on: 0)
    world.write([set("c", 3)], on: 1)
    world.settle()
    let chains = try [world.chain(of: 0), world.chain(of: 1)].sorted()
    let log = try #require(world.devices[0].replica.stores[TestWorld.store]?.log)
    for lost in log.changeSets.keys.sorted() {
      var answer = Answer(store: TestWorld.store, number: 5, above: [:])
      let batch = answer.nextPiece(of: log, bytes: Limits.pieceBytes)
      #expect(!batch.isUnfinished && batch.covers.map(\.chain) == chains)
      let storage = MemoryStorage(world.devices[0].disk)
      try storage.commit([.remove(.store(TestWorld.store, .changeSet(lost)))])
      let parts = try messages(batch, from: storage, missing: 1).map { try part($0, world) }
      let last = try #require(parts.last)
      #expect(parts.reduce(0) { $0 + $1.changeSets.count } == log.changeSets.count - 1)
      #expect(last.answers == 5 && !last.hasMore)
      #expect(last.covers.map(\.chain) == chains.filter { $0.device != lost.device })
    }
  }

  @Test func `an entry that one round keeps and removes again is sent in between`() throws {
    let world = try TestWorld(devices: 2, seed: 322)
    let round = try answer(world)
    let stored = try #require(stored(round).first)
    let kept = try #require(world.devices[0].disk.stores[TestWorld.store]?.changeSets.first)
    let (reference, changeSet) = kept
    let put: [Mutation] =
      [.put(.store(TestWorld.store, .changeSet(reference)), changeSet.row)]
      + changeSet.entries.sorted { $0.key < $1.key }.map {
        .put(.store(TestWorld.store, .entry(reference, $0.key)), $0.value)
      }
    let session = SessionID(rawValue: 1)
    let effects: [Effect] = [
      .persist(put), .sendStored(session, stored),
      .persist([.remove(.store(TestWorld.store, .entry(reference, 0)))]),
      .sendStored(session, stored),
      .persist(reference.keys([1], in: TestWorld.store).map { .remove($0) }),
      .sendStored(session, stored),
    ]
    let filled = try effects.filled(from: MemoryStorage())
    let counts = try zip(self.stored(filled), [0, 1, 1]).map { batch, missing in
      let messages = try messages(batch, from: MemoryStorage(), missing: missing)
      return try entries(#require(messages.first), world)
    }
    #expect(counts == [2, 1, 0])
  }
}
