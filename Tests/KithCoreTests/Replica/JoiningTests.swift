import KithCrypto
import Testing

@testable import KithCore

/// A device that joins pulls everything over the pairing's connection (`Docs/Protocol.md`,
/// "First sync").
@Suite struct JoiningTests {
  @Test func `a joining device has everything before it is a member`() throws {
    let world = try TestWorld(devices: 2, seed: 900)
    let other = try #require(StoreIdentifier("com.example.Other"))
    world.perform(.open(other, .standard), on: 0)
    world.connectAll()
    world.settle()
    world.write([set("published", 1)], on: 1)
    world.write([set("elsewhere", 2)], on: 0, in: other)
    world.settle()
    world.disconnectAll()
    // Only device 0 has this, as a draft.
    world.write([set("drafted", 3)], on: 0)
    let (joiner, session) = try world.beginJoin(by: 0)
    while world.deliverOne(on: [[0, joiner]]) {
      world.flush(0)
      world.flush(joiner)
    }
    #expect(world.devices[joiner].hasPulledAll)
    #expect(world.view(joiner) == world.view(0))
    #expect(world.view(joiner).count == 2)
    #expect(world.devices[joiner].replica.view(of: other).count == 1)
    #expect(!world.devices[0].replica.roster.isMember(world.devices[joiner].keys.id))
    // The joiner's data is on its disk: it shows the same after a start, alone.
    world.endJoin(of: joiner, on: session)
    while world.deliverOne(on: [[0, joiner]]) {}
    #expect(world.devices[0].replica.roster.isMember(world.devices[joiner].keys.id))
    #expect(world.devices[0].closed.contains(.joined))
    try world.restart(joiner)
    #expect(world.view(joiner).count == 2)
    world.connectAll()
    world.settle()
    world.checkConvergence("joined")
    world.checkInvariants("joined")
  }

  @Test func `an account without stores is joined too`() throws {
    let world = try TestWorld(devices: 1, seed: 901)
    world.devices[0].disk.stores = [:]
    try world.restart(0)
    try world.join()
    #expect(world.devices[0].replica.roster.isMember(world.devices[1].keys.id))
  }

  @Test func `a join that breaks off makes nobody a member, and can be tried again`() throws {
    let world = try TestWorld(devices: 1, seed: 902)
    world.write([set("k", 1)], on: 0)
    let (joiner, _) = try world.beginJoin()
    _ = world.deliverOne(on: [[0, joiner]])
    world.disconnect(0, joiner)
    let lost = world.devices[joiner].keys.id
    #expect(!world.devices[0].replica.roster.isMember(lost))
    #expect(world.devices[0].replica.roster.certificate(of: lost) == nil)
    #expect(world.devices[0].replica.status().devices.count == 1)
    try world.join()
    #expect(world.text("k", on: 2) == 1)
  }

  @Test func `a device whose last word was lost shows its certificate itself`() throws {
    let world = try TestWorld(devices: 2, seed: 903)
    world.write([set("k", 1)], on: 0)
    let (joiner, _) = try world.beginJoin()
    while world.deliverOne(on: [[0, joiner]]) { world.flush(joiner) }
    #expect(world.devices[joiner].hasPulledAll)
    world.disconnect(0, joiner)
    #expect(!world.devices[0].replica.roster.isMember(world.devices[joiner].keys.id))
    world.connect(1, joiner)
    world.settle()
    #expect(world.devices[1].replica.roster.isMember(world.devices[joiner].keys.id))
    world.connectAll()
    world.settle()
    #expect(world.devices[0].replica.roster.isMember(world.devices[joiner].keys.id))
    world.checkConvergence("shown")
  }

  @Test func `an inviter that is revoked meanwhile takes nobody in`() throws {
    let world = try TestWorld(devices: 2, seed: 904)
    world.connectAll()
    world.settle()
    world.write([set("k", 1)], on: 0)
    world.settle()
    let (joiner, session) = try world.beginJoin(by: 0)
    while world.deliverOne(on: [[0, joiner]]) { world.flush(joiner) }
    world.perform(.revoke(world.devices[0].keys.id, keeping: []), on: 1)
    world.settle()
    #expect(world.links[[0, joiner]] == nil)
    world.endJoin(of: joiner, on: session)
    for index in 0...1 {
      #expect(!world.devices[index].replica.roster.isMember(world.devices[joiner].keys.id))
    }
    // Nor does the other, once it is shown the certificate: no path to the genesis counts.
    world.connect(1, joiner)
    world.settle()
    #expect(!world.devices[1].replica.roster.isMember(world.devices[joiner].keys.id))
  }

  @Test func `a joiner brings nothing before its last word`() throws {
    let world = try TestWorld(devices: 1, seed: 905)
    world.write([set("k", 1)], on: 0)
    let (joiner, session) = try world.beginJoin()
    while world.deliverOne(on: [[0, joiner]]) { world.flush(joiner) }
    let stranger = try #require(StoreIdentifier("com.example.Stranger"))
    let records = world.devices[joiner].replica.roster.records
    var message = WireMessage()
    message.records.records = try records.map { try WireRecord(serializedBytes: $0.encoded) }
    let have = Have(
      number: 9, isWhole: true, listsAll: true,
      stores: [StoreHave(store: stranger, vector: [:], digest: nil, policy: .standard)])
    let change = try world.seal(
      [try world.entry("forged", on: joiner).plaintext()], by: joiner, sequence: 1)
    let batch = Batch(
      store: TestWorld.store, changeSets: [change],
      covers: [Cover(chain: change.header.chain, from: 0, through: 1)])
    for bytes in [message.encodedBytes()] + have.messages() + batch.messages() {
      let inbound = try #require(InboundMessage(decoding: bytes, account: world.account))
      world.perform(.received(session, inbound), on: 0)
    }
    #expect(!world.devices[0].replica.roster.isMember(world.devices[joiner].keys.id))
    #expect(world.devices[0].replica.stores[stranger] == nil)
    #expect(world.view(0).count == 1)
  }

  @Test func `the joiner goes on after its inviter's clock, whatever its own says`() throws {
    let world = try TestWorld(devices: 1, seed: 906)
    world.clockErrors[0] = 3 * 3_600_000
    world.write([set("k", "ahead")], on: 0)
    let reading = world.devices[0].replica.hybridClock
    try world.join()
    #expect(world.text("k", on: 1) == "ahead")
    #expect(world.devices[1].replica.hybridClock >= reading)
    // Its own write of a key that it saw is later.
    world.write([set("k", "after")], on: 1)
    #expect(world.text("k", on: 1) == "after")
  }

  @Test func `an inviter's clock beyond the ration ends the join`() throws {
    let world = try TestWorld(devices: 1, seed: 909)
    world.devices[0].replica.timeKeeper.clock = HybridClock(
      latest: HybridTime(generation: 200, milliseconds: TestWorld.origin))
    let (joiner, _) = try world.beginJoin()
    #expect(world.devices[joiner].closed.contains(.clocksDiffer))
    #expect(world.devices[joiner].replica.hybridClock.generation < 200)
  }

  @Test func `a joiner that is revoked meanwhile is served no more`() throws {
    let world = try TestWorld(devices: 2, seed: 910)
    world.connectAll()
    world.settle()
    let (joiner, session) = try world.beginJoin(by: 0)
    let link = try #require(world.devices[0].replica.links[session])
    guard case .joiner(_, let records) = link.state else {
      Issue.record("nobody joins")
      return
    }
    // Another member is shown the certificate before the last word, and revokes the device.
    world.perform(.learn(records), on: 1)
    world.perform(.revoke(world.devices[joiner].keys.id, keeping: []), on: 1)
    world.settle()
    #expect(world.links[[0, joiner]] == nil)
    #expect(world.devices[0].closed.contains(.revoked))
  }

  @Test func `a joiner counts the stores of which it keeps only a part`() throws {
    let world = try TestWorld(devices: 1, seed: 911, policy: .maximum)
    let small = try #require(StoreIdentifier("com.example.Small"))
    world.perform(.open(small, .standard), on: 0)
    world.write([set("k", 1)], on: 0, in: small)
    // Eight values and their overhead exceed the 16 MiB of one author that a device keeps in stores
    // that no program there has opened.
    let value = try EncodedValue(blob((2 << 20) - 16))
    for number in 0..<8 {
      world.write([KithCore.Operation(key: "k\(number)", value: value)], on: 0, flush: false)
    }
    world.flush(0)
    #expect(world.view(0).count == 8)
    let (joiner, _) = try world.beginJoin()
    #expect(world.devices[joiner].replica.joinProgress?.partialStores == 0)
    while world.deliverOne(on: [[0, joiner]]) {
      world.flush(0)
      world.flush(joiner)
    }
    #expect(world.devices[joiner].hasPulledAll)
    let progress = try #require(world.devices[joiner].replica.joinProgress)
    #expect(progress.stores == 2)
    #expect(progress.pulledStores == 2)
    #expect(progress.partialStores == 1)
    let author = world.devices[0].keys.id
    #expect(
      world.devices[joiner].reports.filter {
        if case .authorOverLimit = $0 { true } else { false }
      } == [.authorOverLimit(store: TestWorld.store, author: author)])
    #expect(world.devices[joiner].replica.view(of: small).count == 1)
    #expect(world.view(joiner).count == 7)
    #expect(try world.covered(of: 0, on: joiner) < world.covered(of: 0, on: 0))
  }

  @Test func `an inviter publishes its drafts before it answers`() throws {
    let world = try TestWorld(devices: 1, seed: 907)
    world.write([set("k", 1)], on: 0)
    #expect(world.devices[0].replica.hasUnpublished(TestWorld.store))
    _ = try world.beginJoin()
    #expect(!world.devices[0].replica.hasUnpublished(TestWorld.store))
  }

  @Test func `the inviter serves others, and takes local writes, during a join`() throws {
    let world = try TestWorld(devices: 2, seed: 908)
    world.connect(0, 1)
    world.settle()
    world.write([set("before", 1)], on: 0)
    world.settle()
    let (joiner, session) = try world.beginJoin(by: 0)
    world.write([set("meanwhile", 2)], on: 0)
    world.write([set("others", 3)], on: 1)
    for _ in 0..<1_000 where world.deliverOne(on: [[0, 1]]) {
      world.flush(0)
      world.flush(1)
    }
    #expect(world.view(0).count == 3)
    #expect(world.view(1).count == 3)
    while world.deliverOne(on: [[0, joiner]]) {
      world.flush(0)
      world.flush(joiner)
    }
    world.endJoin(of: joiner, on: session)
    world.settle()
    world.connect(0, joiner)
    world.settle()
    world.checkConvergence("after the join")
  }
}
