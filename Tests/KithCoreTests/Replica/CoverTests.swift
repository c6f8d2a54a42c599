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
