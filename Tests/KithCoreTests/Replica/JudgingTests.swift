import KithCrypto
import Testing

@testable import KithCore

/// The judgement of validly signed content (`Docs/Protocol.md`, "Entries and change sets").
@Suite struct JudgingTests {
  private func world(seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed)
    world.connectAll()
    world.settle()
    return world
  }

  /// An entry of device 0 with these clocks, counted from now in milliseconds.
  private func entry(
    _ key: String, stamp: Int, claim: Int, fallbackClaim: Int? = nil, in world: TestWorld
  ) throws -> Entry {
    let device = world.devices[0].keys.id
    func time(_ offset: Int) -> HybridTime {
      HybridTime(milliseconds: UInt64(Int(world.now.wallMilliseconds) + offset))
    }
    func claimed(_ offset: Int) -> Claim { Claim(clock: time(offset), device: device, group: 0) }
    let value = try EncodedValue(1)
    return Entry(
      key: Key(key), stamp: Stamp(clock: time(stamp), device: device), content: .value(value),
      claim: claimed(claim),
      fallback: fallbackClaim.map { Fallback(value: value, claim: claimed($0)) })
  }

  @Test func `entries written or claimed after they were published are set aside, each on its own`()
    throws
  {
    let world = try world(seed: 120)
    let entries = [
      try entry("as it must be", stamp: -20, claim: -10, fallbackClaim: -11, in: world),
      try entry("written later", stamp: 5_000, claim: -10, in: world),
      try entry("claimed later", stamp: -20, claim: 5_000, in: world),
      try entry(
        "falls back to its own time", stamp: -20, claim: -10, fallbackClaim: -10, in: world),
      try entry("falls back to later", stamp: -20, claim: -10, fallbackClaim: -9, in: world),
    ]
    try world.publish(entries.map { $0.plaintext() }, by: 0, to: 1)
    #expect(Array(world.view(1).keys) == ["as it must be"])
    #expect(world.devices[1].replica.counters.quarantined == 4)
    // It is wrong for ever, so it is counted and not asked for again.
    #expect(try world.covered(of: 0, on: 1) == 1)
  }

  @Test func `a change set signed for another store is dropped, blamed and not counted`() throws {
    let world = try world(seed: 121)
    let other = try #require(StoreIdentifier("com.example.Other"))
    let changeSet = try world.seal(
      [try world.entry("k", on: 0).plaintext()], by: 0, sequence: 1, for: other)
    try world.hand([changeSet], above: 0, from: 0, to: 1)
    #expect(world.view(1).isEmpty)
    #expect(world.devices[1].replica.counters.rejected == 1)
    // Not as one whose signature fails.
    let (author, reports) = (world.devices[0].keys.id, world.devices[1].reports)
    #expect(
      reports == [
        .misdirected(store: TestWorld.store, peer: author, author: author, count: 1)
      ])
    // Its neighbour is applied; the chain is not counted, though a header of it was received.
    let own = try world.seal([try world.entry("own", on: 0).plaintext()], by: 0, sequence: 2)
    try world.hand([changeSet, own], above: 0, from: 0, to: 1)
    #expect(Array(world.view(1).keys) == ["own"])
    #expect(try world.covered(of: 0, on: 1) == 0)
  }
}
