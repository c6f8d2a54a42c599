import KithCrypto
import Testing

@testable import KithCore

/// A device knows which stores were damaged in storage, and gets the data back from other devices.
@Suite struct LackingTests {
  /// Two devices that hold the same: three keys of the first in one change set, one of the second.
  private func world(_ seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed)
    world.connectAll()
    world.settle()
    world.write([set("a", 1), set("b", blob(2_000)), set("c", 3)], on: 0)
    world.write([set("d", 4)], on: 1)
    world.settle()
    world.checkConvergence("before")
    world.disconnectAll()
    return world
  }

  private let damage = StorageDamage(rows: 1, loss: StoreLoss(rows: 3))

  /// The change set of a device that is kept on another's disk, with entries.
  private func reference(of author: Int, on index: Int, in world: TestWorld) throws
    -> ChangeSetReference
  {
    let kept = world.devices[index].disk.stores[TestWorld.store]?.changeSets ?? [:]
    let id = world.devices[author].keys.id
    return try #require(kept.first { $0.key.device == id && !$0.value.entries.isEmpty }?.key)
  }

  private func isLacking(_ index: Int, _ world: TestWorld) -> Bool {
    world.devices[index].replica.isLacking(TestWorld.store)
  }

  @Test(arguments: ["entry", "change set"], [0, 1])
  func `a lost entry or change set is reported, and given back`(what: String, author: Int) throws {
    let world = try world(author == 0 ? 300 : 301)
    let reference = try reference(of: author, on: 1, in: world)
    let before = world.view(1)
    if what == "entry" {
      world.devices[1].disk.apply(
        .remove(.store(TestWorld.store, .entry(reference, author == 0 ? 1 : 0))))
    } else {
      world.devices[1].disk.stores[TestWorld.store]?.changeSets[reference] = nil
    }
    try world.restart(1, damage: damage)
    #expect((world.view(1) != before) as Bool)
    #expect(isLacking(1, world))
    #expect(world.devices[1].reports.contains(.damaged(rows: 1, stores: [TestWorld.store])))
    // It is known after another start too, which uses up no further incarnation.
    let used = world.devices[1].replica.usedIncarnations
    let incarnation = world.devices[1].replica.incarnations.current
    try world.restart(1)
    #expect(isLacking(1, world))
    #expect(world.devices[1].replica.usedIncarnations == used)
    #expect(world.devices[1].replica.incarnations.current == incarnation)
    world.connectAll()
    world.settle()
    world.checkConvergence("given back")
    #expect((world.view(1) == before) as Bool)
    #expect(!isLacking(1, world))
    #expect(world.devices[1].reports.contains(.regained(store: TestWorld.store)))
    #expect(world.devices[1].disk.stores[TestWorld.store]?.lost == [:])
    for device in world.devices {
      #expect(device.replica.counters.rejected == 0, "\(device.name) finds fault with another")
      #expect(device.replica.counters.forks == 0)
    }
    // Its writes from here on reach the other.
    world.write([set("e", 5)], on: 1)
    world.settle()
    #expect(world.text("e", on: 0) == 5)
    world.checkInvariants("after")
    try world.checkDisks("after")
    #expect(!isLacking(1, world))
  }

  @Test func `a change set that nobody has stays missing, and is reported`() throws {
    let world = try TestWorld(devices: 2, seed: 302)
    world.connectAll()
    world.settle()
    world.write([set("a", 1)], on: 0)
    world.settle()
    // Published, and lost with the only device that it reached.
    let old = world.devices[1].disk
    world.write([set("b", 2)], on: 0)
    world.settle()
    world.disconnectAll()
    world.devices[1].disk = old
    try world.restart(1, isCopy: true)
    let kept = world.devices[0].disk.stores[TestWorld.store]?.changeSets ?? [:]
    let newest = try #require(kept.keys.max { $0.sequence < $1.sequence })
    world.devices[0].disk.stores[TestWorld.store]?.changeSets[newest] = nil
    try world.restart(0, damage: damage)
    world.connectAll()
    world.settle()
    #expect(world.text("a", on: 0) == 1 && world.text("b", on: 0) == nil)
    #expect(isLacking(0, world))
    // It does not give the sequence again.
    world.write([set("c", 3)], on: 0)
    world.settle()
    world.checkConvergence("without what was lost")
    #expect(isLacking(0, world))
    #expect(world.devices[1].replica.counters.forks == 0)
  }

  private func missing(_ index: Int, _ world: TestWorld) -> StoreLoss? {
    world.devices[index].replica.status().stores.first { $0.identifier == TestWorld.store }?.missing
  }

  @Test func `a loss that was accepted is said no more, and is taken back all the same`() throws {
    let world = try world(305)
    let reference = try reference(of: 0, on: 1, in: world)
    let before = world.view(1)
    // The change set is kept without it: what it lost is put back into it.
    world.devices[1].disk.apply(.remove(.store(TestWorld.store, .entry(reference, 1))))
    try world.restart(1, damage: damage)
    #expect(missing(1, world) == StoreLoss(rows: 3))
    try world.restart(1)
    #expect(missing(1, world) == StoreLoss(rows: 3))
    // More of it is added.
    try world.restart(1, damage: damage)
    #expect(missing(1, world) == StoreLoss(rows: 6))

    world.perform(.acceptLoss(TestWorld.store), on: 1)
    #expect(missing(1, world) == nil && !isLacking(1, world))
    #expect(world.devices[1].reports.contains(.lossAccepted(store: TestWorld.store)))
    #expect(world.devices[1].replica.counters.damaged == 0)
    try world.restart(1)
    #expect(missing(1, world) == nil && !isLacking(1, world))
    #expect((world.view(1) != before) as Bool)

    // Later damage is not accepted yet, and no earlier damage is counted with it.
    try world.restart(1, damage: damage)
    #expect(missing(1, world) == StoreLoss(rows: 3))
    world.perform(.acceptLoss(TestWorld.store), on: 1)
    world.connectAll()
    world.settle()
    world.checkConvergence("taken back")
    #expect((world.view(1) == before) as Bool)
    #expect(world.devices[1].disk.stores[TestWorld.store]?.loss == nil)
    #expect(world.devices[1].disk.stores[TestWorld.store]?.lost == [:])
  }

  @Test(arguments: [true, false])
  func `a row that does not open counts as missing until it is given back or accepted`(
    isAccepted: Bool
  ) throws {
    let world = try world(isAccepted ? 306 : 307)
    let reference = try reference(of: 0, on: 1, in: world)
    let before = world.view(1)
    world.devices[1].disk.stores[TestWorld.store]?.changeSets[reference]?.header = [1]
    try world.restart(1)
    #expect((world.view(1) != before) as Bool)
    for _ in 0..<2 {
      #expect(missing(1, world) == StoreLoss(rows: 1))
      try world.restart(1)
    }
    if isAccepted {
      world.perform(.acceptLoss(TestWorld.store), on: 1)
      #expect(world.devices[1].disk.stores[TestWorld.store]?.changeSets[reference] == nil)
      #expect(!isLacking(1, world))
      try world.restart(1)
      #expect(!isLacking(1, world))
    }
    world.connectAll()
    world.settle()
    world.checkConvergence("given back")
    #expect((world.view(1) == before) as Bool)
    #expect(!isLacking(1, world))
    try world.restart(1)
    #expect(!isLacking(1, world))
    #expect(world.devices[1].replica.counters.damaged == 0)
    world.checkInvariants("after")
  }

  @Test func `change sets of a revoked device are not missed`() throws {
    let world = try TestWorld(devices: 3, seed: 304)
    world.connectAll()
    world.settle()
    world.write([set("a", 1)], on: 2)
    world.settle()
    let reference = try reference(of: 2, on: 0, in: world)
    world.disconnectAll()
    world.devices[0].disk.stores[TestWorld.store]?.changeSets[reference] = nil
    try world.restart(0, damage: damage)
    #expect(isLacking(0, world))
    world.perform(.revoke(world.devices[2].keys.id, keeping: []), on: 1)
    world.connect(0, 1)
    world.settle()
    #expect(world.text("a", on: 0) == 1, "carried over")
    #expect(!isLacking(0, world))
    try world.restart(0)
    #expect(!isLacking(0, world))
  }
}
