import KithCrypto
import Testing

@testable import KithCore

/// What may not grow so large that it cannot be passed on.
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
    try world.hand(batch, from: 1, to: 0)
    #expect(world.devices[0].replica.stores[TestWorld.store]?.log.changeSets.isEmpty == true)
    #expect(world.devices[0].replica.counters.quarantined == 1)
    #expect(world.devices[0].replica.counters.rejected == 0)
    world.write([set("k", 1)], on: 0)
    world.connect(0, 2)
    world.settle()
    #expect(world.text("k", on: 2) == 1)
  }

  @Test func `a box that another put to a change set is not its author's fault`() throws {
    let world = try TestWorld(devices: 2, seed: 181)
    world.connectAll()
    world.settle()
    var changeSet = try world.seal(
      [try world.entry("k", on: 0).plaintext()], by: 0, sequence: 1)
    changeSet.stored.entries[1] = [UInt8](repeating: 0, count: 6 << 20)
    try world.hand([changeSet], above: 0, from: 0, to: 1)
    #expect(world.devices[1].replica.counters.quarantined == 0)
    #expect(world.devices[1].replica.counters.rejected == 1)
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
