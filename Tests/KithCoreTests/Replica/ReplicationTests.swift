import KithCrypto
import Testing

@testable import KithCore

@Suite struct ReplicationTests {
  @Test func `a write reaches a connected device, with its reason`() throws {
    let world = try TestWorld(devices: 2, seed: 1)
    world.connectAll()
    world.settle()
    world.write([set("colour", "red")], on: 0)
    world.settle()
    #expect(world.text("colour", on: 1) == "red")
    #expect(world.devices[1].viewChanges.last?.reason == .externalChange)
    #expect(world.devices[0].viewChanges.last?.reason == nil)
    world.checkInvariants("set")
    world.checkConvergence("set")
  }

  @Test func `a write travels over a device in between`() throws {
    let world = try TestWorld(devices: 3, seed: 2)
    world.connect(0, 1)
    world.connect(1, 2)
    world.settle()
    world.write([set("a", 1), set("b", 2)], on: 0)
    world.write([set("c", 3)], on: 2)
    world.settle()
    world.checkConvergence("line")
    #expect(world.view(2).count == 3)
    let holders = world.devices[0].replica.holders(of: TestWorld.store)
    #expect(holders[world.devices[1].keys.id] == true)
  }

  @Test func `the later of two concurrent writes wins everywhere`() throws {
    let world = try TestWorld(devices: 2, seed: 3)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.write([set("k", "first")], on: 0)
    world.now.wallMilliseconds += 5
    world.write([set("k", "second")], on: 1)
    world.connectAll()
    world.settle()
    #expect(world.text("k", on: 0) == "second")
    world.checkConvergence("conflict")
    world.checkInvariants("conflict")
    #expect(world.devices[0].viewChanges.last?.changes.map(\.key) == ["k"])
  }

  @Test func `a thousand offline writes of one key are published as one`() throws {
    let world = try TestWorld(devices: 2, seed: 4)
    for number in 0..<1_000 { world.write([set("k", .integer(Int64(number % 100)))], on: 0) }
    world.connectAll()
    world.settle()
    #expect(world.devices[1].disk.stores[TestWorld.store]?.changeSets.count == 1)
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts.isEmpty == true)
    #expect(world.text("k", on: 1) == 99)
  }

  @Test func `many keys of one flush are one change set`() throws {
    let world = try TestWorld(devices: 2, seed: 5)
    world.connectAll()
    world.settle()
    for number in 0..<100 { world.write([set("k\(number)", .integer(1))], on: 0, flush: false) }
    world.flush(0)
    world.settle()
    #expect(world.devices[1].disk.stores[TestWorld.store]?.changeSets.count == 1)
    #expect(world.view(1).count == 100)
    world.checkConvergence("group")
  }

  @Test func `superseded entries and empty change sets are thrown away`() throws {
    let world = try TestWorld(devices: 2, seed: 6)
    world.connectAll()
    world.settle()
    for number in 0..<50 { world.write([set("k", .integer(Int64(number)))], on: 0) }
    world.settle()
    for device in world.devices {
      #expect(device.disk.stores[TestWorld.store]?.changeSets.count == 1)
    }
    world.write([remove("k")], on: 1)
    world.settle()
    #expect(world.view(0).isEmpty)
    // The newest header of each chain stays.
    #expect(world.devices[0].disk.stores[TestWorld.store]?.changeSets.count == 2)
    try world.checkDisks("pruned")
    world.checkConvergence("pruned")
  }

  @Test func `a device that was away catches up with all that changed`() throws {
    let world = try TestWorld(devices: 3, seed: 7)
    world.connectAll()
    world.settle()
    world.disconnect(0, 2)
    world.disconnect(1, 2)
    for number in 0..<40 {
      world.write([set("k\(number)", .integer(Int64(number)))], on: number % 2)
    }
    world.settle()
    world.write([remove("k3"), set("k4", "changed")], on: 1)
    world.settle()
    world.connect(1, 2)
    world.settle()
    world.checkConvergence("away")
    #expect(world.view(2).count == 39)
  }

  @Test func `the periodic have mends what a lost push left open`() throws {
    let world = try TestWorld(devices: 2, seed: 8)
    world.connectAll()
    world.settle()
    var lost = 0
    world.tamper = { from, _, message in
      guard from == 0, lost < 1, message.count > 200 else { return message }
      lost += 1
      return nil
    }
    world.write([set("a", 1)], on: 0)
    world.settle()
    world.write([set("b", 2)], on: 0)
    world.settle()
    #expect(lost == 1)
    #expect(world.text("a", on: 1) == nil)
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(world.text("a", on: 1) == 1)
    world.checkConvergence("mended")
  }

  @Test func `in sync and idle, a peer is sent one small message in half a minute`() throws {
    let world = try TestWorld(devices: 2, seed: 9)
    world.connectAll()
    world.write([set("a", 1)], on: 0)
    world.settle()
    // Each device's message about its vector waits a moment for others to go with it.
    world.advance(milliseconds: 500)
    world.settle()
    var count = 0
    world.tamper = { _, _, message in
      count += 1
      #expect(message.count < 1_024)
      return message
    }
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(count == 2)
  }

  @Test func `stores are kept apart, and unknown ones are taken on`() throws {
    let world = try TestWorld(devices: 2, seed: 10)
    let other = try #require(StoreIdentifier("com.example.Other"))
    world.connectAll()
    world.settle()
    world.perform(.open(other, Policy(keys: 7)), on: 0)
    let value = try EncodedValue("there")
    world.perform(
      .write(WriteID(rawValue: 999), other, [KithCore.Operation(key: "k", value: value)]), on: 0)
    world.settle()
    #expect(world.devices[1].replica.view(of: other) == ["k": value])
    #expect(world.devices[1].replica.usage(of: other)?.policy.keys == 7)
    #expect(world.view(1).isEmpty)
  }

  @Test func `different limits keep a store from syncing, and both sides say so`() throws {
    let world = try TestWorld(devices: 2, seed: 11)
    world.perform(.open(TestWorld.store, Policy(keys: 3)), on: 1)
    world.connectAll()
    world.write([set("a", 1)], on: 0)
    world.settle()
    #expect(world.view(1).isEmpty)
    for device in world.devices {
      #expect(
        device.reports.contains { if case .policyMismatch = $0 { true } else { false } })
    }
    world.perform(.open(TestWorld.store, .standard), on: 1)
    world.settle()
    world.checkConvergence("agreed")
    #expect(world.text("a", on: 1) == 1)
  }
}

/// Work that is done at once has the same result as work done one after the other, in any order.
@Suite struct RepeaterTests {
  private static let backwards: InboundMessage.Repeater = { count, body in
    for index in (0..<count).reversed() { body(index) }
  }

  @Test(arguments: [0, 1, 31, 32, 33, 100])
  func `values are in order, and every index is asked for once`(count: Int) {
    #expect(values(count, by: 32, with: Self.backwards) { $0 * 3 } == (0..<count).map { $0 * 3 })
    #expect(values(count, by: 32, with: nil) { $0 * 3 } == (0..<count).map { $0 * 3 })
  }

  @Test func `a batch opened ahead, and all at once, gives the same state and effects`() throws {
    // A copy of the replica is fed what the original got.
    let world = try TestWorld(devices: 2, seed: 77)
    world.write((0..<100).map { set("k\($0)", .integer(Int64($0))) }, on: 0)
    var messages: [[UInt8]] = []
    world.tamper = { _, to, message in
      if to == 1 { messages.append(message) }
      return message
    }
    world.connectAll()
    var replica = world.devices[1].replica
    let session = try #require(replica.links.keys.first)
    world.settle()
    var twin = replica
    // Of a replica that opened nothing yet.
    let opener = replica.entryOpener
    for message in messages {
      let one = try #require(InboundMessage(decoding: message, account: world.account))
      var many = try #require(
        InboundMessage(decoding: message, account: world.account, concurrently: Self.backwards))
      many.open(with: opener)
      #expect(
        replica.handle(.received(session, one), at: world.instant(of: 1)).map { "\($0)" }
          == twin.handle(.received(session, many), at: world.instant(of: 1)).map { "\($0)" })
    }
    #expect(replica.view(of: TestWorld.store).count == 100)
    #expect(replica.view(of: TestWorld.store) == twin.view(of: TestWorld.store))
    #expect(
      replica.stores[TestWorld.store]?.digest() == twin.stores[TestWorld.store]?.digest())
  }
}
