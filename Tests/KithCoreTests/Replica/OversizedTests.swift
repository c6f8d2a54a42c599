import KithCrypto
import Testing

@testable import KithCore

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
