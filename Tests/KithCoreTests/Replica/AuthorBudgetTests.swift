import KithCrypto
import Testing

@testable import KithCore

/// A member that makes stores under limits of its own choice fills no other's memory or disk.
@Suite struct AuthorBudgetTests {
  /// Hands large values of an author to device 1, in so many stores, and returns what is kept of it.
  private func fill(
    _ stores: Int, of world: TestWorld, changeSets: Int, by index: Int = 0
  ) throws -> [Int] {
    let value = try EncodedValue(.string(String(repeating: "v", count: (2 << 20) - 16)))
    let names = (0..<stores).compactMap { StoreIdentifier("fill\(index)of\($0)") }
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 1 }?.session)
    for name in names {
      for number in 0..<changeSets {
        let clock = world.devices[index].replica.tick()
        let stamp = Stamp(clock: clock, device: world.devices[index].keys.id)
        let entry = Entry(
          key: Key("k\(number)"), stamp: stamp, content: .value(value),
          claim: Claim(clock: clock, device: stamp.device, group: 0))
        let changeSet = try world.seal(
          [entry.plaintext()], by: index, sequence: UInt64(number + 1), for: name)
        let batch = Batch(
          store: name, changeSets: [changeSet],
          covers: [
            Cover(chain: changeSet.header.chain, from: UInt64(number), through: UInt64(number + 1))
          ])
        if number == 0 {
          let have = Have(
            number: 1, isWhole: true, listsAll: false,
            stores: [
              StoreHave(
                store: name, vector: [:], digest: nil, policy: .maximum)
            ])
          for message in have.messages() {
            let inbound = try #require(InboundMessage(decoding: message, account: world.account))
            world.perform(.received(session, inbound), on: 1)
          }
        }
        for message in batch.messages() {
          let inbound = try #require(InboundMessage(decoding: message, account: world.account))
          world.perform(.received(session, inbound), on: 1)
        }
      }
    }
    let author = world.devices[index].keys.id
    return names.map { world.devices[1].replica.stores[$0]?.log.weights[author] ?? 0 }
  }

  @Test func `stores that no program here opened share a small part of the budget`() throws {
    let world = try TestWorld(devices: 2, seed: 310)
    world.connectAll()
    world.settle()
    let kept = try fill(3, of: world, changeSets: 5)
    #expect(kept.reduce(0, +) <= Limits.unopenedAuthorBytes, "\(kept)")
    #expect(kept.reduce(0, +) > Limits.unopenedAuthorBytes - (3 << 20), "\(kept)")
    // Change sets that were not taken do not count as covered, and are reported.
    let last = try #require(StoreIdentifier("fill0of2"))
    #expect(
      world.devices[1].reports.contains(
        .authorOverLimit(store: last, author: world.devices[0].keys.id)))
    let status = world.devices[1].replica.status().stores.first { $0.identifier == last }
    #expect(status?.authorsOverLimit == [world.devices[0].keys.id] && status?.isOverLimit == false)
    let chain = try world.chain(of: 0)
    #expect(world.devices[1].replica.stores[last]?.log.vector[chain] ?? 0 < 5)
    // A program opens a store, and the device remembers that.
    world.perform(.open(last, .maximum), on: 1)
    #expect(world.devices[1].disk.stores[last]?.isOpened == true)
    try world.restart(1)
    #expect(world.devices[1].replica.stores[last]?.isOpened == true)
  }

  @Test func `devices that a member certified filled a node each with a budget of its own`() throws
  {
    let world = try TestWorld(devices: 8, seed: 312)
    for index in world.devices.indices where index != 1 {
      world.connect(min(1, index), max(1, index))
    }
    world.settle()
    var kept = 0
    for author in [0, 2, 3, 4, 5] {
      kept += try fill(1, of: world, changeSets: 8, by: author).reduce(0, +)
    }
    #expect(kept <= Limits.authorsBytes, "\(kept)")
    #expect(kept > Limits.authorsBytes - (3 << 20), "\(kept)")
  }

  @Test func `a batch under way takes no more than is kept`() throws {
    let world = try TestWorld(devices: 2, seed: 311)
    world.connectAll()
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 1 }?.session)
    let value = try EncodedValue(.string(String(repeating: "v", count: 1 << 20)))
    let room = Policy.standard.room(factor: Limits.authorFactor)
    for number in 1...(room / (1 << 20) + 4) {
      let clock = world.devices[0].replica.tick()
      let stamp = Stamp(clock: clock, device: world.devices[0].keys.id)
      let entry = Entry(
        key: "k", stamp: stamp, content: .value(value),
        claim: Claim(clock: clock, device: stamp.device, group: 0))
      let changeSet = try world.seal([entry.plaintext()], by: 0, sequence: UInt64(number))
      var message = WireMessage()
      message.batch.store = TestWorld.store.rawValue
      message.batch.more = true
      message.batch.changeSets = [changeSet.wire]
      let inbound = try #require(
        InboundMessage(decoding: message.encodedBytes(), account: world.account))
      world.perform(.received(session, inbound), on: 1)
    }
    let weight = try #require(world.devices[1].replica.links[session]?.bytesHeld)
    #expect(weight <= room && weight > room - (2 << 20))
  }
}
