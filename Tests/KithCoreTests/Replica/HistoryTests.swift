import KithCrypto
import Testing

@testable import KithCore

/// What a device keeps of the values that it showed before (`Docs/Decisions/history.md`).
@Suite struct HistoryTests {
  private func history(
    _ key: Key?, on index: Int, in world: TestWorld
  ) -> [PropertyListValue?] {
    values(key, on: index, in: world).map(\.value)
  }

  private func values(_ key: Key?, on index: Int, in world: TestWorld) -> [PastValue] {
    world.devices[index].replica.history(of: TestWorld.store, key: key, limit: .max)
  }

  private func meet(_ world: TestWorld) {
    world.connectAll()
    world.settle()
  }

  @Test func `a write, another device's write and a removal each end a value`() throws {
    let world = try TestWorld(devices: 2, seed: 400)
    world.write([set("k", 1)], on: 0)
    meet(world)
    world.now.wallMilliseconds += 1_000
    let time = world.now.wallMilliseconds
    world.write([set("k", 2)], on: 1)
    world.settle()
    world.write([remove("k")], on: 0)
    world.settle()
    #expect(history("k", on: 0, in: world) == [2, 1, nil])
    // The other device had not shown the key before it came.
    #expect(history("k", on: 1, in: world) == [2, 1])
    #expect(values("k", on: 1, in: world).map(\.endedBy) == [world.id(0), world.id(1)])
    #expect(
      values("k", on: 0, in: world).map(\.endedBy) == [world.id(0), world.id(1), world.id(0)])
    #expect(values("k", on: 1, in: world).allSatisfy { $0.endedMilliseconds >= time })
    // A value that comes back ends that the key was missing.
    world.write([set("k", 3)], on: 1)
    world.settle()
    #expect(history("k", on: 0, in: world) == [nil, 2, 1, nil])
    try world.checkDisks("written")
  }

  @Test func `a value that the quota hides is kept, and no device is named`() throws {
    let world = try TestWorld(devices: 2, seed: 401, policy: Policy(totalBytes: 1_000, keys: 8))
    meet(world)
    world.write([set("early", blob(600))], on: 0)
    world.now.wallMilliseconds += 5
    world.write([set("late", blob(600))], on: 1)
    world.settle()
    #expect(history("late", on: 1, in: world) == [blob(600), nil])
    #expect(values("late", on: 1, in: world).map(\.endedBy) == [nil, world.id(1)])
    #expect(history("early", on: 1, in: world).isEmpty)
  }

  @Test func `neither a first sync nor a join fills the history`() throws {
    let world = try TestWorld(devices: 2, seed: 402)
    for number in 0..<20 { world.write([set("k\(number)", .integer(Int64(number)))], on: 0) }
    meet(world)
    #expect(history(nil, on: 1, in: world).isEmpty)
    world.disconnectAll()
    try world.join()
    #expect((world.view(2) == world.view(0)) as Bool)
    #expect(history(nil, on: 2, in: world).isEmpty)
  }

  @Test func `a store that no program here has opened has no history`() throws {
    let world = try TestWorld(devices: 2, seed: 403)
    let other = try #require(StoreIdentifier("com.example.Other"))
    world.perform(.open(other, .standard), on: 0)
    world.write([set("k", 1)], on: 0, in: other)
    meet(world)
    world.write([set("k", 2)], on: 0, in: other)
    world.settle()
    #expect(world.devices[1].replica.history(of: other, key: nil, limit: 9).isEmpty)
    #expect(world.devices[0].replica.history(of: other, key: nil, limit: 9).count == 2)
  }

  @Test func `it outlives restarts, and is as durable as the change`() throws {
    let world = try TestWorld(devices: 1, seed: 404)
    world.write([set("k", 1)], on: 0)
    world.write([set("k", 2)], on: 0)
    let before = values(nil, on: 0, in: world)
    #expect(before.map(\.value) == [1, nil])
    world.write([set("k", 3)], on: 0, flush: false)
    #expect(history("k", on: 0, in: world) == [2, 1, nil])
    try world.restart(0)
    #expect(world.text("k", on: 0) == 2)
    #expect(values(nil, on: 0, in: world) == before)
  }

  @Test func `switching it off deletes it, until it is switched on again`() throws {
    let world = try TestWorld(devices: 1, seed: 405)
    func stored() -> Int? { world.devices[0].disk.stores[TestWorld.store]?.pastValues.count }
    world.write([set("k", 1)], on: 0)
    world.perform(.keepHistory(true), on: 0)
    #expect(stored() == 1)
    world.perform(.keepHistory(false), on: 0)
    #expect(stored() == 0 && history(nil, on: 0, in: world).isEmpty)
    world.write([set("k", 2)], on: 0)
    try world.restart(0)
    world.write([set("k", 3)], on: 0)
    #expect(stored() == 0 && history(nil, on: 0, in: world).isEmpty)
    world.perform(.keepHistory(true), on: 0)
    world.write([set("k", 4)], on: 0)
    try world.restart(0)
    #expect(history("k", on: 0, in: world) == [3])
  }

  @Test func `old values go from the disk, also of a store that does not change`() throws {
    let world = try TestWorld(devices: 1, seed: 406)
    world.write([set("k", 1)], on: 0)
    world.write([set("k", 2)], on: 0)
    func stored() -> Int? { world.devices[0].disk.stores[TestWorld.store]?.pastValues.count }
    world.now.wallMilliseconds += Limits.historyMilliseconds - 1
    world.perform(.tick, on: 0)
    #expect(stored() == 2)
    world.now.wallMilliseconds += 1
    world.perform(.tick, on: 0)
    #expect(stored() == 0)
    world.write([set("k", 3)], on: 0)
    #expect(history("k", on: 0, in: world) == [2])
  }

  @Test func `a change of limits keeps what it hides`() throws {
    let world = try TestWorld(devices: 1, seed: 407)
    world.write([set("a", blob(600))], on: 0)
    world.write([set("b", blob(600))], on: 0)
    world.perform(.open(TestWorld.store, Policy(totalBytes: 700)), on: 0)
    #expect(world.view(0).count == 1)
    let hidden = values(nil, on: 0, in: world).filter { $0.value != nil }
    #expect(hidden.map(\.endedBy) == [nil])
    #expect(hidden.map(\.value) == [blob(600)])
  }
}
