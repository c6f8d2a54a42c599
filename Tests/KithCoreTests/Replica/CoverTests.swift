import KithCrypto
import Testing

@testable import KithCore

/// The change sets that a device counts in its vector, so that it does not ask for them again
/// (`Docs/Protocol.md`, "Batch").
@Suite struct CoverTests {
  private func world(seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed)
    world.connectAll()
    world.settle()
    return world
  }

  private func sealed(
    _ key: String, _ sequence: UInt64, in world: TestWorld, by writer: Int? = nil
  ) throws -> ChangeSet {
    try world.seal(
      [try world.entry(key, on: 0, by: writer).plaintext()], by: 0, sequence: sequence)
  }

  @Test
  func `a change set that cannot be judged yet is not counted, though its successor is there`()
    throws
  {
    let world = try world(seed: 90)
    let first = try sealed("first", 1, in: world)
    // A stamp of another member would stand only if that one were revoked.
    let second = try sealed("second", 2, in: world, by: 1)
    let third = try sealed("third", 3, in: world)
    try world.hand([first], above: 0, from: 0, to: 1)
    #expect(try world.covered(of: 0, on: 1) == 1)
    try world.hand([second, third], above: 1, from: 0, to: 1)
    #expect(world.view(1).keys.sorted() == ["first", "third"])
    #expect(try world.covered(of: 0, on: 1) == 1)
  }

  /// Found by the simulator, which loses messages without their connection: a device that had
  /// answered once never said again that it had nothing.
  @Test func `an empty answer that was lost kept drafts from being published`() throws {
    let world = try TestWorld(devices: 2, seed: 96)
    var isLost = false
    world.tamper = { from, _, message in
      guard from == 1, !isLost, case .batch = try? WireMessage(serializedBytes: message).body else {
        return message
      }
      isLost = true
      return nil
    }
    world.connectAll()
    world.settle()
    #expect(isLost)
    world.write([set("k", 1)], on: 0)
    world.settle()
    #expect(world.text("k", on: 1) == nil)
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(world.text("k", on: 1) == 1)
    #expect(!world.devices[0].replica.hasUnpublished(TestWorld.store))
  }

  @Test func `a format that is not known yet is not counted`() throws {
    let world = try world(seed: 91)
    var newer = try sealed("newer", 1, in: world)
    var header = try WireChangeSetHeader(serializedBytes: newer.stored.header)
    header.format = 2
    newer.stored.header = header.encodedBytes()
    newer.stored.signature =
      world.devices[0].keys.signing.sign(
        ChangeSetHeader.signedBytes(account: world.account, header: newer.stored.header)
      ).bytes
    try world.hand([newer, try sealed("known", 2, in: world)], above: 0, from: 0, to: 1)
    #expect(Array(world.view(1).keys) == ["known"])
    #expect(try world.covered(of: 0, on: 1) == 0)
    #expect(world.devices[1].replica.counters == NodeStatus.Counters())
  }

  @Test func `a change set above our own vector is not counted until the gap is closed`() throws {
    let world = try world(seed: 92)
    let changeSets = try (1...3).map { try sealed("k\($0)", UInt64($0), in: world) }
    try world.hand([changeSets[2]], above: 2, from: 0, to: 1)
    #expect(Array(world.view(1).keys) == ["k3"])
    #expect(try world.covered(of: 0, on: 1) == 0)
    try world.hand([changeSets[0]], above: 0, from: 0, to: 1)
    #expect(try world.covered(of: 0, on: 1) == 1)
    try world.hand([changeSets[2]], above: 2, from: 0, to: 1)
    #expect(try world.covered(of: 0, on: 1) == 1)
    try world.hand([changeSets[1], changeSets[2]], above: 1, from: 0, to: 1)
    #expect(try world.covered(of: 0, on: 1) == 3)
  }

  @Test func `a lost push is asked for again, and no divergence is needed for it`() throws {
    let world = try world(seed: 93)
    world.tamper = { from, _, message in
      guard case .batch? = InboundMessage(decoding: message, account: world.account)?.body else {
        return message
      }
      return from == 0 ? nil : message
    }
    world.write([set("lost", 1)], on: 0)
    world.settle()
    world.tamper = nil
    world.write([set("kept", 2)], on: 0)
    world.settle()
    #expect(Array(world.view(1).keys) == ["kept"])
    #expect(try world.covered(of: 0, on: 1) == 0)
    world.advance(milliseconds: 31_000)
    world.settle()
    world.checkConvergence("asked again")
    #expect(world.view(1).count == 2)
    for device in world.devices { #expect(device.replica.counters.divergences == 0) }
  }
}

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
