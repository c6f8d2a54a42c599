import KithCrypto
import Testing

@testable import KithCore

/// Published claims and fallbacks follow `Docs/Protocol.md` ("Writing and publishing"). Entries
/// with other claims or fallbacks are quarantined.
@Suite struct ClaimTests {
  @Test func `a value that grows claims anew and carries what it replaced`() throws {
    let world = try TestWorld(devices: 2, seed: 80)
    world.connectAll()
    world.settle()
    func newest() throws -> Entry {
      try #require(world.devices[1].replica.stores[TestWorld.store]?.state.slots["k"]?.newest.entry)
    }
    world.write([set("k", blob(10))], on: 0)
    world.settle()
    let first = try newest()
    #expect(first.fallback == nil)
    world.write([set("k", blob(20))], on: 0)
    world.settle()
    let grown = try newest()
    #expect(first.claim < grown.claim)
    #expect(grown.fallback?.value == first.value)
    #expect(grown.fallback?.claim == first.claim)
    world.write([set("k", blob(15))], on: 1)
    world.settle()
    let shrunk = try newest()
    #expect(shrunk.claim == grown.claim)
    #expect(shrunk.fallback == grown.fallback)
    #expect(shrunk.replaced == grown.stamp)
  }

  @Test func `a fallback claimed no earlier than its entry is set aside`() throws {
    let world = try TestWorld(devices: 2, seed: 81)
    world.connectAll()
    world.settle()
    let device = world.devices[0].keys.id
    let clock = HybridTime(milliseconds: world.now.wallMilliseconds)
    let claim = Claim(clock: clock, device: device, group: 0)
    let value = try EncodedValue(1)
    let entry = Entry(
      key: "k", stamp: Stamp(clock: clock, device: device), content: .value(value), claim: claim,
      fallback: Fallback(value: value, claim: claim))
    try world.publish([entry.plaintext()], by: 0, to: 1)
    #expect(world.view(1).isEmpty)
    #expect(world.devices[1].replica.counters.quarantined == 1)
  }

  @Test func `a stamp of another member cannot be judged`() throws {
    let world = try TestWorld(devices: 2, seed: 82)
    world.connectAll()
    world.settle()
    let clock = HybridTime(milliseconds: world.now.wallMilliseconds)
    let other = world.devices[1].keys.id
    let entry = Entry(
      key: "k", stamp: Stamp(clock: clock, device: other), content: .value(try EncodedValue(1)),
      claim: Claim(clock: clock, device: other, group: 0))
    try world.publish([entry.plaintext()], by: 0, to: 1)
    #expect(world.view(1).isEmpty)
    #expect(world.devices[1].replica.stores[TestWorld.store]?.log.vector == [:])
  }
}
