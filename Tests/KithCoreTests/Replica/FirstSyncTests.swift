import KithCrypto
import Testing

@testable import KithCore

@Suite struct FirstSyncTests {
  @Test func `a new device's defaults never erase good data`() throws {
    let world = try TestWorld(devices: 2, seed: 30)
    world.write([set("theme", "dark"), set("size", 12)], on: 0)
    world.now.wallMilliseconds += 1_000
    world.write([set("theme", "default")], on: 1)
    world.write([set("fresh", "kept")], on: 1)
    world.write([set("size", 9), set("other", 1)], on: 1)
    #expect(world.text("theme", on: 1) == "default")
    world.connectAll()
    world.settle()
    world.checkConvergence("first pull")
    world.checkInvariants("first pull")
    #expect(world.text("theme", on: 0) == "dark")
    #expect(world.text("size", on: 0) == 12)
    #expect(world.text("fresh", on: 0) == "kept")
    // A provisional transaction that loses one key loses whole.
    #expect(world.text("other", on: 0) == nil)
    let change = world.devices[1].viewChanges.first { $0.reason == .initialSyncChange }
    #expect(change?.superseded == ["other", "size", "theme"])
    #expect(
      world.devices[1].replica.refusals(of: TestWorld.store).map(\.reason)
        == [.initialSync, .initialSync])
  }

  @Test func `a removal that is already there wins over a provisional write`() throws {
    let world = try TestWorld(devices: 2, seed: 31)
    world.write([set("k", 1)], on: 0)
    world.write([remove("k")], on: 0)
    world.write([set("k", 2)], on: 1)
    world.connectAll()
    world.settle()
    #expect(world.view(0).isEmpty)
    world.checkConvergence("removal")
  }

  @Test func `two new devices do not end each other's first pull`() throws {
    let world = try TestWorld(devices: 3, seed: 32)
    world.write([set("k", "good")], on: 0)
    world.write([set("k", "default 1")], on: 1)
    world.write([set("k", "default 2")], on: 2)
    world.connect(1, 2)
    world.settle()
    #expect(world.devices[1].replica.isProvisional)
    #expect(world.devices[2].replica.isProvisional)
    #expect(world.text("k", on: 1) == "default 1")
    world.connect(0, 1)
    world.settle()
    #expect(!world.devices[2].replica.isProvisional)
    world.checkConvergence("two new")
    #expect(world.text("k", on: 2) == "good")
  }

  @Test func `a pull from a device that is new itself ends nothing, so nothing is published`()
    throws
  {
    let world = try TestWorld(devices: 3, seed: 37)
    world.write([set("k", "good")], on: 0)
    world.now.wallMilliseconds += 1_000
    world.connect(1, 2)
    world.settle()
    for index in 1...2 {
      #expect(world.devices[index].replica.isProvisional)
      #expect(world.devices[index].replica.stores[TestWorld.store]?.isProvisional == true)
    }
    world.write([set("k", "default")], on: 1)
    world.settle()
    #expect(world.devices[1].disk.stores[TestWorld.store]?.changeSets.isEmpty == true)
    world.connect(0, 1)
    world.settle()
    world.checkConvergence("new itself")
    #expect(world.text("k", on: 0) == "good")
  }

  @Test func `a device that awaits its first pull of a store ends no other's of it`() throws {
    let world = try TestWorld(devices: 3, seed: 38)
    world.write([set("k", "good")], on: 0)
    // Device 2 is past the first pull of the others, say: only this store's is to come.
    world.devices[2].replica.isProvisional = false
    world.connect(1, 2)
    world.settle()
    #expect(world.devices[1].replica.stores[TestWorld.store]?.isProvisional == true)
    #expect(world.devices[2].replica.stores[TestWorld.store]?.isProvisional == true)
    world.write([set("k", "default")], on: 1)
    world.connect(0, 1)
    world.settle()
    world.checkConvergence("this store")
    #expect(world.text("k", on: 2) == "good")
  }

  @Test func `a provisional write of a key wins over what its program saw there`() throws {
    let world = try TestWorld(devices: 3, seed: 39)
    world.write([set("theme", "dark")], on: 0)
    world.connect(0, 2)
    world.settle()
    world.disconnectAll()
    // Device 2 has this store, and waits for others still: device 1 sees it and stays provisional.
    world.devices[2].replica.isProvisional = true
    world.connect(1, 2)
    world.settle()
    #expect(world.text("theme", on: 1) == "dark")
    world.write([set("theme", "light")], on: 1)
    #expect(world.text("theme", on: 1) == "light")
    let draft = world.devices[1].replica.stores[TestWorld.store]?.drafts.last
    let seen = world.devices[1].replica.stores[TestWorld.store]?.state.slots["theme"]?.newest.entry
    #expect(draft?.clock == seen?.stamp.clock.successor)
    world.connect(0, 1)
    world.settle()
    world.checkConvergence("seen")
    #expect(world.text("theme", on: 0) == "light")
  }

  @Test func `provisional writes of a key that was seen outran the clock and were set aside`()
    throws
  {
    let world = try TestWorld(devices: 3, seed: 40)
    world.write([set("theme", "dark")], on: 0)
    world.connect(0, 2)
    world.settle()
    world.disconnectAll()
    world.devices[2].replica.isProvisional = true
    world.connect(1, 2)
    world.settle()
    // Each is stamped one later than what its program saw, though no time passes.
    for number in 0..<8 {
      world.write([set("theme", .integer(Int64(number))), set("k\(number)", 1)], on: 1)
    }
    world.connect(0, 1)
    world.settle()
    #expect(world.text("theme", on: 0) == 7)
    // The first write by the clock is later than all of them.
    world.write([set("theme", "after")], on: 1)
    world.settle()
    #expect(world.text("theme", on: 0) == "after")
    for device in world.devices { #expect(device.replica.counters.quarantined == 0) }
    world.checkConvergence("outran")
  }

  @Test func `what was not asked for does not end a first pull`() throws {
    let world = try TestWorld(devices: 2, seed: 41)
    world.write([set("k", "good")], on: 0)
    world.connect(0, 1)
    let session = try #require(world.links[[0, 1]]?.ends[0].session)
    // Device 1 hears that the other is past its first pull, but not yet what it has.
    let have = Have(
      number: 1, isWhole: true, listsAll: true, isProvisional: false,
      stores: [
        StoreHave(
          store: TestWorld.store, vector: [:], digest: nil, policy: .standard,
          isProvisional: false)
      ])
    let inbound = InboundMessage(decoding: have.messages()[0], account: world.account)
    world.perform(.received(session, try #require(inbound)), on: 1)
    try world.hand(Batch(store: TestWorld.store), from: 0, to: 1)
    #expect(world.devices[1].replica.stores[TestWorld.store]?.isProvisional == true)
    #expect(world.devices[1].replica.isProvisional)
    world.settle()
    #expect(!world.devices[1].replica.isProvisional)
    #expect(world.text("k", on: 1) == "good")
  }

  @Test func `a provisional transaction that loses a key before the pull ends loses whole`() throws
  {
    let world = try TestWorld(devices: 3, seed: 35)
    world.write([set("theme", "dark")], on: 0)
    world.connect(0, 2)
    world.settle()
    world.disconnectAll()
    // Device 2 has this store, and waits for others still.
    world.devices[2].replica.isProvisional = true
    world.write([set("theme", "default"), set("other", 1)], on: 1)
    world.connect(1, 2)
    world.settle()
    #expect(world.devices[1].replica.isProvisional)
    #expect(world.text("theme", on: 1) == "dark")
    #expect(world.text("other", on: 1) == nil)
    #expect(
      world.devices[1].replica.refusals(of: TestWorld.store).map(\.reason) == [.initialSync])
    world.checkInvariants("lost early")
  }

  @Test func `a later provisional write of a key has the later stamp`() throws {
    let world = try TestWorld(devices: 3, seed: 36)
    world.write([set("theme", "dark")], on: 0)
    world.connect(0, 2)
    world.settle()
    world.disconnectAll()
    world.devices[2].replica.isProvisional = true
    world.connect(1, 2)
    world.settle()
    #expect(world.text("theme", on: 1) == "dark")
    // The first is stamped after what it overwrites, so the second must be after the first.
    world.write([set("theme", "light"), set("other", 1)], on: 1)
    world.write([set("other", 2), set("third", 3)], on: 1)
    let clocks = world.devices[1].replica.stores[TestWorld.store]?.drafts.map(\.clock) ?? []
    #expect(clocks.count == 2)
    #expect(clocks == clocks.sorted())
    world.connect(0, 1)
    world.settle()
    world.checkConvergence("stamps")
    #expect(world.text("other", on: 0) == 2)
  }

  @Test func `after the first pull writes count like any other`() throws {
    let world = try TestWorld(devices: 2, seed: 33)
    world.connectAll()
    world.settle()
    #expect(!world.devices[1].replica.isProvisional)
    world.write([set("k", "old")], on: 0)
    world.settle()
    world.write([set("k", "new")], on: 1)
    world.settle()
    #expect(world.text("k", on: 0) == "new")
  }

  @Test func `a first pull ended although part of the answer could not be judged`() throws {
    let world = try TestWorld(devices: 2, seed: 42)
    // Its author joins unknown to device 1, and its records are lost at first.
    try world.join(by: 0)
    world.connect(0, 2)
    world.settle()
    world.write([set("theme", "dark")], on: 2)
    world.settle()
    world.disconnectAll()
    world.write([set("theme", "default")], on: 1)
    world.tamper = { from, _, message in
      guard from == 0,
        case .records? = InboundMessage(decoding: message, account: world.account)?
          .body
      else { return message }
      return nil
    }
    world.connect(0, 1)
    world.settle()
    #expect(world.devices[1].replica.stores[TestWorld.store]?.isProvisional == true)
    #expect(world.devices[1].replica.isProvisional)
    world.tamper = nil
    world.disconnectAll()
    world.connect(0, 1)
    world.settle()
    #expect(!world.devices[1].replica.isProvisional)
    #expect(world.text("theme", on: 1) == "dark")
    #expect(
      world.devices[1].replica.refusals(of: TestWorld.store).map(\.reason) == [.initialSync])
  }

  @Test func `what is wrong for ever does not keep a first pull from ending`() throws {
    let world = try TestWorld(devices: 2, seed: 43)
    world.write([set("k", 1)], on: 0)
    world.tamper = { from, _, message in
      guard from == 0, var wire = try? WireMessage(serializedBytes: message),
        case .batch(var batch) = wire.body, !batch.changeSets.isEmpty
      else { return message }
      batch.changeSets[0].signature[5] ^= 1
      wire.batch = batch
      return wire.encodedBytes()
    }
    world.connectAll()
    world.settle()
    #expect(world.devices[1].replica.counters.rejected > 0)
    #expect(!world.devices[1].replica.isProvisional)
  }

  @Test func `an account without stores ends the first pull too`() throws {
    let world = try TestWorld(devices: 2, seed: 34)
    var disk = world.devices[0].disk
    disk.stores = [:]
    world.devices[0].disk = disk
    try world.restart(0)
    world.write([set("k", 1)], on: 1)
    world.connectAll()
    world.settle()
    #expect(!world.devices[1].replica.isProvisional)
    world.checkConvergence("no stores")
    #expect(world.text("k", on: 0) == 1)
  }
}
