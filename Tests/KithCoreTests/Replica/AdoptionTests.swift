import Testing

@testable import KithCore

/// What was written while nobody was signed in, on signing in (`Docs/Protocol.md`, "First sync").
@Suite struct AdoptionTests {
  private static let id = WriteID(rawValue: 1_000)

  private func adopt(
    _ transactions: [[KithCore.Operation]], on index: Int, in world: TestWorld
  ) {
    world.perform(.adopt(Self.id, TestWorld.store, transactions), on: index)
    world.flush(index)
  }

  @Test func `on a new device it loses to whatever the account has`() throws {
    let world = try TestWorld(devices: 2, seed: 300)
    world.write([set("theme", "dark")], on: 0)
    world.now.wallMilliseconds += 1_000
    adopt(
      [[set("theme", "local")], [set("fresh", 1)], [set("theme", 1), set("group", 1)]], on: 1,
      in: world)
    #expect(world.text("fresh", on: 1) == 1)
    world.connectAll()
    world.settle()
    world.checkConvergence("adopted")
    #expect(world.text("theme", on: 0) == "dark")
    #expect(world.text("fresh", on: 0) == 1)
    #expect(world.text("group", on: 0) == nil)
    #expect(
      world.devices[1].replica.refusals(of: TestWorld.store).map(\.reason)
        == [.initialSync, .initialSync])
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
    #expect(!world.devices[1].replica.isProvisional)
    world.connectAll()
    world.settle()
    world.checkConvergence("adopted")
    #expect(world.text("k", on: 1) == "other's, earlier")
    #expect(world.text("mine", on: 0) == "local")
    #expect(world.devices[1].replica.refusals(of: TestWorld.store).map(\.reason) == [.initialSync])
  }

  @Test func `what is published of it loses to a write that is met later`() throws {
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
    let change = world.devices[1].viewChanges.first { $0.reason == .accountChange }
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
    world.write([set("l", "a new device's default")], on: 1)
    world.connectAll()
    world.settle()
    world.checkConvergence("joined")
    #expect(world.text("l", on: 1) == 1)
  }

  @Test func `what does not fit is refused, and the rest survives a restart`() throws {
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
