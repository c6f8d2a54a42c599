import Testing

@testable import KithCore

/// Writes made while nobody was signed in, on signing in (`Docs/Protocol/drafts.md`, "Adoption").
@Suite struct AdoptionTests {
  private static let id = WriteID(rawValue: 1_000)

  /// Writes of local stores, one a millisecond from a time on.
  private func writes(
    _ transactions: [[KithCore.Operation]], from milliseconds: UInt64 = TestWorld.origin
  ) -> [LocalWrite] {
    transactions.enumerated().map { index, operations in
      LocalWrite(
        clock: HybridTime(milliseconds: milliseconds + UInt64(index)), operations: operations)
    }
  }

  private func adopt(
    _ transactions: [[KithCore.Operation]], on index: Int, in world: TestWorld
  ) {
    world.perform(.adopt(Self.id, TestWorld.store, writes(transactions)), on: index)
    world.flush(index)
  }

  @Test func `on a new device it loses to whatever the account has`() throws {
    let world = try TestWorld(devices: 1, seed: 300)
    world.write([set("theme", "dark")], on: 0)
    world.now.wallMilliseconds += 1_000
    try world.join()
    adopt(
      [[set("theme", "local")], [set("fresh", 1)], [set("theme", 1), set("group", 1)]], on: 1,
      in: world)
    #expect(world.text("theme", on: 1) == "dark")
    #expect(world.text("fresh", on: 1) == 1)
    world.connectAll()
    world.settle()
    world.checkConvergence("adopted")
    #expect(world.text("theme", on: 0) == "dark")
    #expect(world.text("fresh", on: 0) == 1)
    #expect(world.text("group", on: 0) == nil)
    let change = world.devices[1].viewChanges.first { $0.reason == .initialSyncChange }
    #expect(change?.superseded == ["group", "theme"])
    #expect(
      world.devices[1].replica.refusals(of: TestWorld.store).map(\.reason)
        == [.initialSync, .initialSync])
  }

  @Test func `a crash before the local stores were emptied refused writes twice`() throws {
    let world = try TestWorld(devices: 2, seed: 306)
    world.write([set("theme", "dark")], on: 0)
    world.connectAll()
    world.settle()
    let local = writes([[set("theme", "local")], [set("mine", 1)], [set("mine", 2)]])
    world.perform(.adopt(Self.id, TestWorld.store, local), on: 1)
    // Durable with the one commit that also holds what was adopted and what was refused.
    let stored = try #require(world.devices[1].disk.stores[TestWorld.store])
    #expect(stored.refusals.count == 1)
    #expect(stored.adopted == local[2].clock)
    try world.restart(1)
    let shown = world.view(1)
    world.perform(.adopt(Self.id, TestWorld.store, local), on: 1)
    world.flush(1)
    #expect(world.devices[1].replica.refusals(of: TestWorld.store).count == 1)
    #expect(world.view(1) == shown)
    #expect(world.devices[1].replica.adoptingStores == [TestWorld.store])
    // The local stores were emptied: their next write may have any clock.
    world.perform(.adopt(Self.id, TestWorld.store, []), on: 1)
    world.flush(1)
    #expect(world.devices[1].replica.adoptingStores.isEmpty)
    try world.restart(1)
    world.perform(
      .adopt(Self.id, TestWorld.store, writes([[set("later", 1)]], from: TestWorld.origin - 5)),
      on: 1)
    world.flush(1)
    #expect(world.text("later", on: 1) == 1)
    world.connectAll()
    world.settle()
    world.checkConvergence("adopted once")
    #expect(world.text("mine", on: 0) == 2)
  }

  @Test func `on a device that was signed in before, any other write of the key wins`() throws {
    let world = try TestWorld(devices: 3, seed: 301)
    world.write([set("before", 1)], on: 0)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.connect(0, 2)
    world.settle()
    world.write([set("k", "other's, earlier")], on: 0)
    world.settle()
    world.now.wallMilliseconds += 60_000
    adopt([[set("k", "local")], [set("mine", "local")]], on: 1, in: world)
    #expect(world.text("k", on: 1) == "local")
    world.connectAll()
    world.settle()
    world.checkConvergence("adopted")
    #expect(world.text("k", on: 1) == "other's, earlier")
    #expect(world.text("mine", on: 0) == "local")
    #expect(world.devices[1].replica.refusals(of: TestWorld.store).map(\.reason) == [.initialSync])
  }

  @Test func `an adopted value that is published loses to a write that is met later`() throws {
    let world = try TestWorld(devices: 3, seed: 302)
    world.write([set("before", 1)], on: 0)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.write([set("k", "device 2's")], on: 2)
    world.now.wallMilliseconds += 60_000
    world.connect(0, 1)
    world.settle()
    adopt([[set("k", "local")]], on: 1, in: world)
    world.settle()
    #expect(world.text("k", on: 0) == "local")
    world.connectAll()
    world.settle()
    world.checkConvergence("met later")
    #expect(world.text("k", on: 0) == "device 2's")
  }

  @Test func `a key that the account shows, or that was removed, is not touched`() throws {
    let world = try TestWorld(devices: 2, seed: 303)
    world.write([set("shown", "account's"), set("gone", 1)], on: 0)
    world.write([remove("gone")], on: 0)
    world.connectAll()
    world.settle()
    adopt([[set("shown", "local")], [set("gone", "local")], [remove("shown")]], on: 1, in: world)
    #expect(world.text("shown", on: 1) == "account's")
    #expect(world.text("gone", on: 1) == nil)
    let change = world.devices[1].viewChanges.first { $0.reason == .initialSyncChange }
    #expect(change?.superseded == ["gone", "shown"])
    #expect(world.devices[1].replica.refusals(of: TestWorld.store).count == 3)
    world.settle()
    world.checkConvergence("untouched")
  }

  @Test func `an account without other devices takes it as written now`() throws {
    let world = try TestWorld(devices: 1, seed: 304)
    adopt([[set("k", 1)], [set("k", 2)], [set("l", 1)]], on: 0, in: world)
    #expect(world.text("k", on: 0) == 2)
    try world.join()
    // The new device has it, so its program finds it there.
    #expect(world.text("l", on: 1) == 1)
    world.connectAll()
    world.settle()
    world.checkConvergence("joined")
    #expect(world.text("l", on: 1) == 1)
  }

  @Test func `an adopted write that does not fit is refused, and the rest survives a restart`()
    throws
  {
    let world = try TestWorld(devices: 1, seed: 305, policy: Policy(totalBytes: 100, keys: 4))
    world.write([set("full", blob(60))], on: 0)
    adopt([[set("large", blob(60))], [set("small", 1)]], on: 0, in: world)
    #expect(world.text("large", on: 0) == nil)
    #expect(world.devices[0].replica.refusals(of: TestWorld.store).map(\.reason) == [.quota])
    try world.restart(0)
    #expect(world.text("small", on: 0) == 1)
    #expect(world.devices[0].replica.refusals(of: TestWorld.store).map(\.reason) == [.quota])
  }
}
