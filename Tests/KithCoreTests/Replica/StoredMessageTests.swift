import KithCrypto
import Testing

@testable import KithCore

/// Boxes are read from storage when they are sent, as they are at that place among the effects.
@Suite struct StoredMessageTests {
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

  private func stored(_ effects: [Effect]) -> [StoredMessage] {
    effects.compactMap { effect in
      if case .sendStored(_, let message) = effect { message } else { nil }
    }
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
    let bytes = try first.encoded(from: storage)
    #expect(try entries(bytes, world) == 2)
    #expect(first.byteCount >= bytes.count)
  }

  @Test func `what the same commit removes is sent as it was before`() throws {
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
      mutations.contains { if case .removeEntry = $0 { true } else { false } },
      "the entry is superseded in the same round")
    let filled = try round.filled(from: storage)
    try storage.commit(mutations)
    #expect(filled.count == round.count)
    var batches: [[UInt8]] = []
    for case .send(_, let bytes) in filled {
      if case .batch? = InboundMessage(decoding: bytes, account: world.account)?.body {
        batches.append(bytes)
      }
    }
    let message = try #require(batches.first)
    #expect(try entries(message, world) == 2)
    // Without that it would lack the entry that its cover promises.
    let stored = try #require(stored(round).first)
    #expect(try entries(stored.encoded(from: storage), world) == 1)
  }

  @Test func `what one round keeps and removes again is sent in between`() throws {
    let world = try TestWorld(devices: 2, seed: 322)
    let round = try answer(world)
    let stored = try #require(stored(round).first)
    let kept = try #require(world.devices[0].disk.stores[TestWorld.store]?.changeSets.first)
    let (reference, changeSet) = kept
    let put: [Mutation] =
      [
        .putHeader(
          TestWorld.store, reference, header: changeSet.header, signature: changeSet.signature)
      ]
      + changeSet.entries.sorted { $0.key < $1.key }.map {
        .putEntry(TestWorld.store, reference, index: $0.key, box: $0.value)
      }
    let session = SessionID(rawValue: 1)
    let effects: [Effect] = [
      .persist(put), .sendStored(session, stored),
      .persist([.removeEntry(TestWorld.store, reference, index: 0)]),
      .sendStored(session, stored), .persist([.removeChangeSet(TestWorld.store, reference)]),
      .sendStored(session, stored),
    ]
    let filled = try effects.filled(from: MemoryStorage())
    var counts: [Int] = []
    for case .send(_, let bytes) in filled { counts.append(try entries(bytes, world)) }
    #expect(counts == [2, 1, 0])
  }
}
