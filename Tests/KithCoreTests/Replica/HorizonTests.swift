import KithCrypto
import Testing

@testable import KithCore

/// Removals that were forgotten, and devices that never saw them (`Docs/Decisions/horizon.md`).
@Suite struct HorizonTests {
  private static let limit = 2

  /// Three devices hold `zombie` and `alive`. While the last is away, the first removes `zombie` and so
  /// many other keys that this removal is forgotten.
  private func world(_ seed: UInt64, devices: Int = 3) throws -> TestWorld {
    let world = try TestWorld(devices: devices, seed: seed)
    world.connectAll()
    world.settle()
    world.write([set("zombie", 1), set("alive", 1)], on: 0)
    world.settle()
    limitRemovals(in: world)
    for other in 0..<devices - 1 { world.disconnect(other, devices - 1) }
    forget("zombie", in: world)
    return world
  }

  private func limitRemovals(in world: TestWorld) {
    for device in world.devices { device.replica.removalLimit = Self.limit }
  }

  private func forget(_ key: String, in world: TestWorld) {
    world.now.wallMilliseconds += 1_000
    world.write([remove(key)], on: 0)
    world.settle()
    for number in 0..<2 * Self.limit {
      world.now.wallMilliseconds += 1_000
      world.write([set("other \(number)", 1)], on: 0)
      world.settle()
      world.write([remove("other \(number)")], on: 0)
      world.settle()
    }
    #expect(store(0, world)?.state.slots[Key(key)] == nil)
    #expect(horizon(0, world).clock > .zero)
  }

  private func store(_ index: Int, _ world: TestWorld) -> StoreReplica? {
    world.devices[index].replica.stores[TestWorld.store]
  }

  private func horizon(_ index: Int, _ world: TestWorld) -> Horizon {
    store(index, world)?.horizon ?? Horizon()
  }

  private func checkGone(_ world: TestWorld, _ devices: [Int], _ comment: Comment) {
    for index in devices {
      #expect(world.text("zombie", on: index) == nil, "\(comment), device \(index)")
      #expect(world.text("alive", on: index) == 1, "\(comment), device \(index)")
      #expect(!horizon(index, world).isBelow, "\(comment), device \(index)")
      #expect(world.digest(index) == world.digest(devices[0]), "\(comment), device \(index)")
      #expect(world.devices[index].replica.counters.divergences == 0, "\(comment)")
    }
  }

  @Test func `a key that was removed while a device was away came back everywhere`() throws {
    let world = try world(700)
    world.connect(0, 2)
    // Nothing says that the device has everything before it lacks what was removed.
    var said = 0
    repeat {
      for index in world.devices.indices { world.flush(index) }
      guard world.devices[0].replica.holders(of: TestWorld.store)[world.id(2)] == true else {
        continue
      }
      said += 1
      #expect(world.text("zombie", on: 2) == nil)
      #expect(world.digest(0) == world.digest(2))
    } while world.deliverOne()
    world.settle()
    #expect(said > 0)
    #expect(world.devices[0].replica.holders(of: TestWorld.store)[world.id(2)] == true)
    checkGone(world, [0, 1, 2], "at once")
    world.connectAll()
    world.advance(milliseconds: 31_000)
    world.settle()
    checkGone(world, [0, 1, 2], "later")
    world.checkConvergence("later")
    try world.checkDisks("later")
  }

  @Test func `a device that joined later knows that a removal was forgotten`() throws {
    let world = try world(701)
    world.disconnectAll()
    try world.join(by: 1)
    world.devices[3].replica.removalLimit = Self.limit
    #expect(horizon(3, world).clock == horizon(1, world).clock)
    world.connect(3, 2)
    world.settle()
    // The joiner has compared digests with no other device yet.
    world.connect(3, 1)
    world.settle()
    checkGone(world, [1, 2, 3], "through the joiner")
  }

  @Test func `on a carrier a removed key stays away as well`() throws {
    let world = try world(702)
    world.disconnectAll()
    let carrier = CarrierID(Digest128 { _ in })
    for index in [0, 2, 0, 2, 0] {
      world.now.wallMilliseconds += 600_000
      world.now.monotonicMilliseconds += 600_000
      world.turn(of: index, on: carrier)
      if world.text("zombie", on: 2) != nil {
        #expect(
          world.devices[2].replica.heldSince(on: carrier) == nil || !horizon(2, world).isBelow)
      }
    }
    checkGone(world, [0, 2], "on a carrier")
  }

  @Test func `a restored directory brings nothing back that all devices had seen removed`() throws {
    let world = try TestWorld(devices: 2, seed: 703)
    world.connectAll()
    world.settle()
    world.write([set("zombie", 1), set("alive", 1)], on: 0)
    world.settle()
    let backup = world.devices[1].disk
    limitRemovals(in: world)
    forget("zombie", in: world)
    #expect(horizon(0, world).unseen.isEmpty)
    world.devices[1].disk = backup
    try world.restart(1, isCopy: true)
    limitRemovals(in: world)
    #expect(world.text("zombie", on: 1) == 1)
    world.connectAll()
    world.settle()
    checkGone(world, [0, 1], "restored")
  }

  @Test func `new writes with old stamps are not taken for forgotten ones`() throws {
    let world = try world(704)
    // Stamped before the horizon, and published after it.
    world.clockErrors[2] = -3_000
    world.write([set("draft", 1)], on: 2)
    let adopted = LocalWrite(
      clock: HybridTime(milliseconds: TestWorld.origin), operations: [set("adopted", 1)])
    world.perform(.adopt(WriteID(rawValue: 900), TestWorld.store, [adopted]), on: 2)
    world.flush(2)
    world.clockErrors[2] = nil
    world.connectAll()
    world.settle()
    checkGone(world, [0, 1, 2], "new writes")
    for index in world.devices.indices {
      #expect(world.text("draft", on: index) == 1 && world.text("adopted", on: index) == 1)
    }
  }

  @Test func `a damaged device removes nothing that it lacks`() throws {
    let world = try world(705)
    world.disconnectAll()
    let kept = world.devices[1].disk.stores[TestWorld.store]?.changeSets ?? [:]
    let reference = try #require(
      kept.first { !$0.value.entries.isEmpty && $0.key.sequence == 1 }?.key)
    let index = try #require(kept[reference]?.entries.keys.first)
    world.devices[1].disk.apply(.remove(.store(TestWorld.store, .entry(reference, index))))
    let damage = StorageDamage(rows: 1, loss: StoreLoss(rows: 1))
    try world.restart(1, damage: damage)
    limitRemovals(in: world)
    #expect(world.text("alive", on: 1) == nil)
    world.connectAll()
    world.settle()
    checkGone(world, [0, 1, 2], "damaged")
  }

  @Test func `two sides of a fork are united, however old`() throws {
    let world = try TestWorld(devices: 4, seed: 706)
    world.connectAll()
    world.settle()
    limitRemovals(in: world)
    for index in 0..<3 { world.disconnect(index, 3) }
    world.disconnect(1, 2)
    for (peer, side) in [(1, "left"), (2, "right")] {
      let changeSet = try world.seal([world.entry(side, on: 3).plaintext()], by: 3, sequence: 1)
      world.connect(peer, 3)
      try world.hand([changeSet], above: 0, from: 3, to: peer)
      world.disconnect(peer, 3)
    }
    world.disconnect(0, 2)
    world.settle()
    #expect(Set(world.view(1).keys) == ["left"])
    #expect(Set(world.view(2).keys) == ["right"])
    world.write([set("zombie", 1)], on: 0)
    world.settle()
    forget("zombie", in: world)
    #expect(Set(world.view(1).keys) == ["left"])
    world.connect(1, 2)
    world.settle()
    for index in [1, 2] {
      #expect(Set(world.view(index).keys) == ["left", "right"], "device \(index)")
    }
    #expect(world.digest(1) == world.digest(2))
  }

  @Test func `values that were carried over for a revoked device stay`() throws {
    let world = try world(707)
    world.connectAll()
    world.settle()
    world.revoke(0, by: 1)
    world.settle()
    for _ in 0..<4 {
      world.advance(milliseconds: 31_000)
      world.settle()
    }
    for index in [1, 2] {
      #expect(world.text("alive", on: index) == 1 && world.text("zombie", on: index) == nil)
    }
    #expect(world.digest(1) == world.digest(2))
  }

  @Test func `a member cannot set the horizon to a time that has not come`() throws {
    let world = try TestWorld(devices: 2, seed: 708)
    world.connectAll()
    world.settle()
    world.write([set("alive", 1)], on: 0)
    world.settle()
    var batch = Batch(store: TestWorld.store)
    batch.horizon = HybridTime(rawValue: .max)
    try world.hand(batch, from: 0, to: 1)
    var have = try #require(store(0, world)).haveForTests
    have.horizon = HybridTime(rawValue: .max)
    let message = Have(number: 0, isWhole: true, listsAll: false, stores: [have])
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 1 }?.session)
    for bytes in message.messages() {
      let inbound = try #require(InboundMessage(decoding: bytes, account: world.account))
      world.perform(.received(session, inbound), on: 1)
    }
    #expect(horizon(1, world).clock <= world.devices[1].replica.hybridClock)
    world.write([set("alive", 2), set("fresh", 1)], on: 0)
    world.settle()
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(world.text("alive", on: 1) == 2 && world.text("fresh", on: 1) == 1)
    world.checkConvergence("a false horizon")
  }

  @Test func `a restarted device is still below the horizon`() throws {
    let world = try world(709)
    world.connect(1, 2)
    for _ in 0..<10_000 where !horizon(2, world).isBelow {
      for index in world.devices.indices { world.flush(index) }
      guard world.deliverOne() else { break }
    }
    #expect(horizon(2, world).isBelow)
    let before = horizon(2, world)
    try world.restart(2)
    limitRemovals(in: world)
    #expect(horizon(2, world) == before)
    #expect(!world.devices[2].replica.holders(of: TestWorld.store).values.contains(true))
    for peer in 0..<2 {
      #expect(world.devices[2].replica.behind(world.id(peer))[TestWorld.store] != 0)
    }
    world.connect(0, 2)
    world.settle()
    checkGone(world, [0, 1, 2], "after a restart")
  }

  /// Nobody is left that could say what was removed: it waited for ever.
  @Test func `a device is not below the horizon once it is the only one`() throws {
    let world = try world(714)
    world.disconnectAll()
    world.devices[2].replica.stores[TestWorld.store]?.horizon.isBelow = true
    world.revoke(0, by: 2, keeping: [world.id(1)])
    #expect(horizon(2, world).isBelow)
    world.revoke(1, by: 2)
    #expect(!horizon(2, world).isBelow)
  }

  @Test func `a device for which removals were forgotten is named until it has everything`() throws
  {
    let world = try world(710)
    func named(_ index: Int) -> [DeviceID] {
      world.devices[index].replica.status().stores.first?.removalsUnseenBy ?? []
    }
    #expect(named(0) == [world.id(2)])
    try world.restart(0)
    #expect(named(0) == [world.id(2)])
    limitRemovals(in: world)
    world.connectAll()
    world.settle()
    #expect(named(0) == [])
    #expect(horizon(0, world).unseen == [])
  }

  @Test func `a device is named before removals are forgotten`() throws {
    let world = try TestWorld(devices: 3, seed: 711)
    world.connectAll()
    world.settle()
    for number in 0..<8 { world.write([set("key \(number)", 1)], on: 0) }
    world.settle()
    for device in world.devices { device.replica.removalLimit = 8 }
    for other in 0..<2 { world.disconnect(other, 2) }
    for number in 0..<6 { world.write([remove("key \(number)")], on: 0) }
    world.settle()
    #expect(
      world.devices[0].replica.status().stores.first?.removalsUnseenBy == [world.id(2)])
    #expect(horizon(0, world).clock == .zero)
    // A device that is alone does not publish them.
    let alone = try TestWorld(devices: 2, seed: 713)
    alone.connectAll()
    alone.settle()
    for number in 0..<4 { alone.write([set("key \(number)", 1)], on: 0) }
    alone.settle()
    alone.disconnectAll()
    for device in alone.devices { device.replica.removalLimit = 8 }
    for number in 0..<4 { alone.write([remove("key \(number)")], on: 0) }
    #expect(
      alone.devices[0].replica.status().stores.first?.removalsUnseenBy == [alone.id(1)])
  }

  /// Found by the simulator: each took in what the other passed on, forgot it, and took it in again.
  @Test func `forgotten removals were passed on without end`() throws {
    let world = try TestWorld(devices: 3, seed: 714)
    world.connectAll()
    world.settle()
    world.write([set("a", 1), set("b", 2)], on: 0)
    world.settle()
    limitRemovals(in: world)
    // This one sends removals that the others have forgotten.
    world.devices[2].replica.removalLimit = 2 * Self.limit
    for number in 0..<3 * Self.limit {
      world.now.wallMilliseconds += 1_000
      world.write([set("other \(number)", 1)], on: 0)
      world.settle()
      world.write([remove("other \(number)")], on: 0)
      world.settle()
    }
    let lost = try #require(
      world.devices[1].disk.stores[TestWorld.store]?.changeSets.first { $0.key.sequence == 1 }?.key)
    world.devices[1].disk.apply(.remove(.store(TestWorld.store, .entry(lost, 1))))
    try world.restart(1)
    limitRemovals(in: world)
    world.devices[2].replica.removalLimit = 2 * Self.limit
    world.connectAll()
    world.settle(limit: 20_000)
    #expect(world.digest(0) == world.digest(1) && world.digest(1) == world.digest(2))
  }

  /// Found by the simulator: who lacked what came before it took it in, forgot it at once and passed it
  /// on, each time that it came.
  @Test func `a removal beyond the coverage that is forgotten at once is not passed on`() throws {
    let world = try TestWorld(devices: 4, seed: 715)
    world.connectAll()
    world.settle()
    limitRemovals(in: world)
    for other in 0..<3 { world.disconnect(other, 3) }
    let early = try world.seal(
      [world.entry("early", on: 3).removal.plaintext()], by: 3, sequence: 8)
    let late = try world.seal([world.entry("late", on: 3).plaintext()], by: 3, sequence: 9)
    world.now.wallMilliseconds += 1_000
    for number in 0..<Self.limit {
      world.write([set("other \(number)", 1)], on: 0)
      world.settle()
      world.write([remove("other \(number)")], on: 0)
      world.settle()
    }
    try world.hand(Batch(store: TestWorld.store, changeSets: [late]), from: 0, to: 1)
    world.settle()
    #expect(store(2, world)?.log.knows(late.reference) == true)
    try world.hand(Batch(store: TestWorld.store, changeSets: [early]), from: 0, to: 1)
    #expect(world.underWay(from: 1, to: 2).count == 0)
    world.settle(limit: 20_000)
    #expect(store(1, world)?.state.removals.count == Self.limit)
    #expect(store(1, world)?.log.knows(early.reference) == false)
  }

  /// At the end of a session's catching up, and not at the next full `Have`.
  @Test func `digests are compared as soon as vectors are equal, and once`() throws {
    let world = try TestWorld(devices: 2, seed: 712)
    world.connectAll()
    world.settle()
    world.write([set("a", 1), set("b", 2)], on: 0)
    world.settle()
    world.disconnectAll()
    let reference = try #require(
      world.devices[1].disk.stores[TestWorld.store]?.changeSets.keys.first)
    world.devices[1].disk.apply(.remove(.store(TestWorld.store, .entry(reference, 1))))
    try world.restart(1)
    world.write([set("c", 1)], on: 0)
    world.connectAll()
    world.settle()
    #expect(world.text("b", on: 1) == 2)
    var haves = 0
    world.tamper = { _, _, message in
      if let wire = try? WireMessage(serializedBytes: message), case .have(let have) = wire.body,
        have.number > 0
      {
        haves += 1
      }
      return message
    }
    for number in 0..<10 {
      world.write([set("d", .integer(Int64(number)))], on: number % 2)
      world.settle()
    }
    #expect(haves == 0)
  }
}

extension StoreReplica {
  fileprivate var haveForTests: StoreHave {
    var copy = self
    return copy.have()
  }
}
