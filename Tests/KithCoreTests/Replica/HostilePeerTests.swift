import KithCrypto
import Testing

@testable import KithCore

/// The effects of copied directories, and of peers that break the rules, on a replica
/// (`Docs/Protocol.md`, "Entries and change sets").
@Suite struct HostilePeerTests {
  /// Alters the change sets of every batch on its way.
  private func alterBatches(
    of world: TestWorld, from sender: Int, _ alter: @escaping (inout WireBatch) -> Void
  ) {
    world.tamper = { from, _, message in
      guard from == sender, var wire = try? WireMessage(serializedBytes: message),
        case .batch(var batch) = wire.body, !batch.changeSets.isEmpty
      else { return message }
      alter(&batch)
      wire.batch = batch
      return wire.encodedBytes()
    }
  }

  @Test(arguments: ["header", "signature", "box"])
  func `a change set that fails its signature or digest is dropped, blamed, and asked for again`(
    part: String
  ) throws {
    let world = try TestWorld.connected(devices: 2, seed: 40)
    alterBatches(of: world, from: 0) { batch in
      switch part {
      case "header": batch.changeSets[0].header[batch.changeSets[0].header.count - 1] ^= 1
      case "signature": batch.changeSets[0].signature[5] ^= 1
      default: batch.changeSets[0].entries[0].box[3] ^= 1
      }
    }
    world.write([set("k", 1)], on: 0)
    world.settle()
    #expect(world.view(1).isEmpty)
    #expect(world.devices[1].replica.counters.rejected > 0)
    #expect(world.devices[1].replica.stores[TestWorld.store]?.log.vector == [:])
    world.tamper = nil
    world.advance(milliseconds: 31_000)
    world.settle()
    world.checkConvergence("asked again")
    #expect(world.text("k", on: 1) == 1)
  }

  @Test func `a bad change set does not touch its neighbours`() throws {
    let world = try TestWorld.connected(devices: 3, seed: 41)
    world.disconnect(0, 2)
    world.disconnect(1, 2)
    world.write([set("good", 1)], on: 0)
    world.write([set("bad", 2)], on: 1)
    world.settle()
    let author = world.devices[1].keys.id
    alterBatches(of: world, from: 0) { batch in
      for index in batch.changeSets.indices {
        let header = try? WireChangeSetHeader(serializedBytes: batch.changeSets[index].header)
        if header?.device == .init(author.bytes) { batch.changeSets[index].signature[0] ^= 1 }
      }
    }
    world.connect(0, 2)
    world.settle()
    #expect(world.text("good", on: 2) == 1)
    #expect(world.text("bad", on: 2) == nil)
  }

  @Test func `a vector that claims too much is believed up to a signed header`() throws {
    let world = try TestWorld.connected(devices: 2, seed: 42)
    alterBatches(of: world, from: 0) { batch in
      for index in batch.covers.indices { batch.covers[index].through = 1 << 40 }
    }
    world.write([set("a", 1)], on: 0)
    world.settle()
    world.tamper = nil
    #expect(world.devices[1].replica.stores[TestWorld.store]?.log.vector.values.max() == 1)
    world.write([set("b", 2)], on: 0)
    world.settle()
    world.checkConvergence("claims")
  }

  @Test func `duplicated and replayed batches have no effect`() throws {
    let world = try TestWorld(devices: 2, seed: 43)
    var recorded: [[UInt8]] = []
    world.tamper = { from, _, message in
      if from == 0 { recorded.append(message) }
      return message
    }
    world.connectAll()
    world.settle()
    world.write([set("k", 1)], on: 0)
    world.write([set("k", 2)], on: 0)
    world.settle()
    world.tamper = nil
    let before = world.devices[1].disk
    let session = try #require(world.links.values.first?.ends.first?.session)
    for message in recorded + recorded {
      let inbound = try #require(InboundMessage(decoding: message, account: world.account))
      world.perform(.received(session, inbound), on: 1)
    }
    #expect(
      world.devices[1].disk.stores[TestWorld.store]?.changeSets.keys
        == before.stores[TestWorld.store]?.changeSets.keys)
    #expect(world.text("k", on: 1) == 2)
    world.settle()
    world.checkConvergence("replayed")
  }

  @Test func `validly signed entries that are wrong are set aside and passed on`() throws {
    let world = try TestWorld(devices: 3, seed: 44)
    world.connect(0, 1)
    world.connect(1, 2)
    world.settle()
    let future = Stamp(
      clock: HybridTime(milliseconds: world.now.wallMilliseconds + 50_000),
      device: world.devices[0].keys.id)
    let claim = Claim(clock: .zero, device: future.device, group: 0)
    let bad = Entry(key: "bad", stamp: future, content: .removed, claim: claim)
    let good = Entry(
      key: "good",
      stamp: Stamp(
        clock: HybridTime(milliseconds: world.now.wallMilliseconds), device: future.device),
      content: .value(try EncodedValue(1)), claim: claim)
    let unknownField = good.plaintext() + [0x48, 1]
    try world.publish(
      [bad.plaintext(), [0xff, 0xff], unknownField, good.plaintext()], by: 0, to: 1)
    world.settle()
    for index in 1...2 {
      #expect(world.text("good", on: index) == 1)
      #expect(world.devices[index].replica.counters.quarantined == 3)
      #expect(world.devices[index].replica.stores[TestWorld.store]?.log.quarantined.count == 3)
    }
    try world.restart(2)
    #expect(world.devices[2].replica.stores[TestWorld.store]?.log.quarantined.count == 3)
  }

  @Test func `a change set published too far ahead is not accepted`() throws {
    let world = try TestWorld.connected(devices: 2, seed: 45)
    world.clockErrors[0] = 121_500
    world.write([set("k", 1)], on: 0)
    world.settle()
    #expect(world.view(1).isEmpty)
    #expect(
      world.devices[1].reports.contains { if case .publishedAhead = $0 { true } else { false } })
    world.clockErrors[0] = 0
    world.now.wallMilliseconds += 70_000
    world.connectAll()
    world.settle()
    #expect(world.text("k", on: 1) == 1)
  }

  @Test func `clocks that differ too much keep stores from being exchanged`() throws {
    let world = try TestWorld(devices: 2, seed: 46)
    world.clockErrors[1] = 120_000
    world.connectAll()
    world.write([set("k", 1)], on: 0)
    world.settle()
    #expect(world.view(1).isEmpty)
    for device in world.devices {
      #expect(device.reports.contains { if case .clocksDiffer = $0 { true } else { false } })
    }
    func agreed() -> [Int] {
      world.devices.map { device in
        device.reports.count { if case .clocksAgree = $0 { true } else { false } }
      }
    }
    #expect(agreed() == [0, 0])
    world.clockErrors[1] = nil
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(world.text("k", on: 1) == 1)
    #expect(agreed() == [1, 1], "each says it once")
    world.disconnectAll()
    world.connectAll()
    world.settle()
    #expect(agreed() == [1, 1])
  }

  @Test func `a device that is not synchronised takes the time of one that is`() throws {
    let world = try TestWorld(devices: 2, seed: 47)
    world.clockErrors[1] = -120_000
    world.perform(.clockStatus(isSynchronised: true), on: 0)
    world.connectAll()
    world.settle()
    world.write([set("k", "early")], on: 0)
    world.settle()
    world.write([set("k", "late")], on: 1)
    world.settle()
    #expect(world.text("k", on: 0) == "late")
    world.checkConvergence("adopted")
  }

  @Test func `a copied directory forks, is noticed, and still converges`() throws {
    let world = try TestWorld(devices: 3, seed: 48)
    world.connectAll()
    world.write([set("k", 0)], on: 1)
    world.settle()
    world.disconnectAll()
    // Device 3 is device 1's directory, copied without anyone noticing.
    try world.add(world.devices[1].keys, disk: world.devices[1].disk)
    world.connect(0, 1)
    world.settle()
    world.write([set("a", "original")], on: 1)
    world.settle()
    world.disconnectAll()
    world.connect(2, 3)
    world.settle()
    world.now.wallMilliseconds += 3
    world.write([set("b", "copy")], on: 3)
    world.settle()
    world.disconnectAll()
    world.connect(0, 2)
    world.settle()
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(world.view(0) == world.view(2))
    #expect(world.text("a", on: 2) == "original")
    #expect(world.text("b", on: 0) == "copy")
    // Each copy, when it meets what the other published, goes on under a new incarnation.
    let before = world.devices[3].replica.incarnations.current
    world.connect(0, 3)
    world.settle()
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(world.devices[3].replica.incarnations.current != before)
    world.write([set("c", 1)], on: 3)
    world.settle()
    #expect(world.text("c", on: 0) == 1)
    #expect(world.view(3) == world.view(0))
  }

  @Test func `a restored directory takes a new incarnation and loses nothing`() throws {
    let world = try TestWorld.connected(devices: 2, seed: 49)
    let old = world.devices[0].disk
    world.write([set("k", "later")], on: 0)
    world.settle()
    world.disconnectAll()
    world.devices[0].disk = old
    try world.restart(0, isCopy: true)
    world.write([set("other", 1)], on: 0)
    world.connectAll()
    world.settle()
    world.checkConvergence("restored")
    #expect(world.text("k", on: 0) == "later")
    #expect(world.text("other", on: 1) == 1)
  }

  @Test func `a device refuses a seventeenth incarnation`() throws {
    let world = try TestWorld.connected(devices: 2, seed: 50)
    for round in 0..<18 {
      world.write([set("k\(round)", 1)], on: 0)
      world.settle()
      try world.restart(0, isCopy: true)
      world.connectAll()
      world.settle()
    }
    #expect(world.devices[0].reports.contains(.tooManyIncarnations))
    let chains = try #require(world.devices[1].replica.stores[TestWorld.store]?.log.chains.keys)
    #expect(chains.filter { $0.device == world.devices[0].keys.id }.count == 16)
    // Nor does it go on under its last one after another start.
    try world.restart(0)
    world.connectAll()
    world.write([set("after", 1)], on: 0)
    world.settle()
    #expect(world.text("after", on: 1) == nil)
    #expect(world.devices[0].replica.hasUnpublished(TestWorld.store))
    #expect(world.devices[1].replica.counters.forks == 0)
  }

  @Test func `a directory restored unnoticed publishes nothing under its old incarnation`() throws {
    let world = try TestWorld.connected(devices: 2, seed: 53)
    world.write([set("a", 1)], on: 0)
    world.settle()
    let old = world.devices[0].disk
    world.write([set("b", 2)], on: 0)
    world.write([set("c", 3)], on: 0)
    world.settle()
    world.disconnectAll()
    world.devices[0].disk = old
    try world.restart(0)
    world.write([set("d", 4)], on: 0)
    world.connectAll()
    world.settle()
    let chain = ChainID(
      device: world.devices[0].keys.id, incarnation: try #require(old.incarnation))
    #expect(world.devices[1].replica.stores[TestWorld.store]?.log.chains[chain]?.received == 3)
    #expect(world.devices[0].replica.incarnations.current != old.incarnation)
    #expect(world.view(1).count == 4)
    world.checkConvergence("restored unnoticed")
  }

  @Test func `one author cannot fill a node`() throws {
    let world = try TestWorld.connected(
      devices: 2, seed: 51, policy: Policy(totalBytes: 1_000, keys: 4))
    for round in 0..<60 {
      var plaintexts: [[UInt8]] = []
      for index in 0..<10 {
        let stamp = Stamp(clock: world.devices[0].replica.tick(), device: world.devices[0].keys.id)
        let entry = Entry(
          key: Key("key \(round) \(index)"), stamp: stamp,
          content: .value(try EncodedValue(blob(100))),
          claim: Claim(clock: stamp.clock, device: stamp.device, group: 0))
        plaintexts.append(entry.plaintext())
      }
      try world.publish(plaintexts, by: 0, to: 1)
      world.settle()
    }
    let weight =
      world.devices[1].replica.stores[TestWorld.store]?.log.weights.byAuthor.values.max() ?? 0
    #expect(weight > 8_000)
    #expect(weight < 8 * (1_000 + 4 * 256) + 10_000)
    #expect(
      world.devices[1].reports.contains { if case .authorOverLimit = $0 { true } else { false } })
    world.checkInvariants("flooded")
  }

  @Test func `removed entries are bounded`() throws {
    let world = try TestWorld(devices: 1, seed: 52)
    func write(_ rounds: Range<Int>) {
      for round in rounds {
        let keys = (0..<100).map { "key \(round) \($0)" }
        world.write(keys.map { set($0, 1) }, on: 0)
        world.write(keys.map(remove), on: 0)
      }
    }
    write(0..<40)
    // A second device makes the first publish them.
    try world.join()
    world.connectAll()
    world.settle()
    write(40..<50)
    world.settle()
    for index in 0...1 {
      #expect(
        world.devices[index].replica.stores[TestWorld.store]?.state.removals.count
          == Limits.removals)
    }
    world.checkInvariants("removals")
  }

  @Test func `equal vectors with different digests are noticed and mended`() throws {
    let world = try TestWorld.connected(devices: 2, seed: 53)
    world.write([set("a", 1), set("b", 2)], on: 0)
    world.settle()
    world.disconnectAll()
    // An entry vanishes from device 1's disk, under a header that stays.
    let reference = try #require(
      world.devices[1].disk.stores[TestWorld.store]?.changeSets.keys.first)
    world.devices[1].disk.apply(.remove(.store(TestWorld.store, .entry(reference, 1))))
    try world.restart(1)
    #expect(world.text("b", on: 1) == nil)
    world.connectAll()
    world.settle()
    #expect(world.text("b", on: 1) == 2)
    #expect(world.devices[0].replica.counters.divergences == 1)
    world.checkConvergence("mended")
    world.checkInvariants("mended")
    try world.checkDisks("mended")
  }

  @Test func `a change set of an author near its limit was counted twice, and not mended`() throws {
    let world = try TestWorld.connected(
      devices: 2, seed: 55, policy: Policy(totalBytes: 1_000, keys: 4))
    // One change set of more than half of what is kept of one author.
    let plaintexts = try (0..<26).map {
      try world.entry("key \($0)", blob(100), on: 0).plaintext()
    }
    try world.publish(plaintexts, by: 0, to: 1)
    world.settle()
    let limit = Replica.authorLimit(under: Policy(totalBytes: 1_000, keys: 4))
    let weight =
      world.devices[1].replica.stores[TestWorld.store]?.log.weights.byAuthor.values.max() ?? 0
    #expect(weight > limit / 2 && weight < limit)
    world.disconnectAll()
    // The author's own replica hears of it, too.
    world.connectAll()
    world.settle()
    #expect(world.digest(0) == world.digest(1))
    world.disconnectAll()
    let disk = world.devices[1].disk
    let reference = try #require(disk.stores[TestWorld.store]?.changeSets.keys.first)
    world.devices[1].disk.apply(.remove(.store(TestWorld.store, .entry(reference, 3))))
    try world.restart(1)
    world.connectAll()
    world.settle()
    #expect(world.digest(0) == world.digest(1))
    #expect(
      world.devices[1].replica.counters.divergences + world.devices[0].replica.counters.divergences
        > 0)
  }

  /// Found by the simulator: a device that keeps change sets above its vector did not say its
  /// digest. So an author that left a gap in its chain could keep devices apart for ever.
  @Test func `a gap that its author left hid that devices had two sides of a fork`() throws {
    let world = try TestWorld.connected(devices: 3, seed: 54)
    world.disconnect(1, 2)
    func signed(_ key: String, _ sequence: UInt64) throws -> ChangeSet {
      try world.seal([world.entry(key, on: 0).plaintext()], by: 0, sequence: sequence)
    }
    let gap = try signed("gap", 5)
    for (peer, side) in [(1, "left"), (2, "right")] {
      try world.hand([signed(side, 1)], above: 0, from: 0, to: peer)
      try world.hand([gap], above: 3, from: 0, to: peer)
      #expect(try world.covered(of: 0, on: peer) == 1)
    }
    world.disconnectAll()
    world.settle()
    world.connect(1, 2)
    world.settle()
    for device in 1...2 {
      #expect(Set(world.view(device).keys) == ["left", "right", "gap"])
      #expect(world.devices[device].replica.counters.divergences == 0)
    }
    #expect(world.digest(1) == world.digest(2))

    // Both have what is above the gap, so neither sends it again.
    var sent = 0
    world.tamper = { _, _, message in
      if let wire = try? WireMessage(serializedBytes: message), case .batch = wire.body {
        sent += 1
      }
      return message
    }
    world.advance(milliseconds: 300_000)
    world.settle()
    #expect(sent == 0)
  }

  /// Digests leave removals out, so nothing shows the lack until the removed value comes.
  @Test func `a fork's removal that a device lacked comes with the value that it removed`() throws {
    let world = try TestWorld(devices: 4, seed: 56)
    world.write([set("k", 1)], on: 3)
    world.connect(0, 1)
    world.connect(0, 2)
    world.settle()
    world.now.wallMilliseconds += 1_000
    let stamp = Stamp(clock: world.devices[0].replica.tick(), device: world.id(0))
    let removal = Entry(
      key: Key("k"), stamp: stamp, content: .removed,
      claim: Claim(clock: stamp.clock, device: stamp.device, group: 0))
    let sides = try [removal, world.entry("other", on: 0)].map {
      try world.seal([$0.plaintext()], by: 0, sequence: 1)
    }
    try world.hand(sides, above: 0, from: 0, to: 1)
    try world.hand([sides[1]], above: 0, from: 0, to: 2)
    world.disconnect(0, 1)
    world.disconnect(0, 2)
    world.connect(1, 2)
    world.settle()
    func knowsRemoval(_ index: Int) -> Bool {
      world.devices[index].replica.stores[TestWorld.store]?.state.slots[Key("k")] != nil
    }
    #expect(knowsRemoval(1) && !knowsRemoval(2))
    #expect(world.digest(1) == world.digest(2))
    world.connect(2, 3)
    world.settle()
    #expect(world.text("k", on: 2) == 1)
    // Each exchange of digests repairs the next device of the line.
    for device in [2, 3] {
      world.advance(milliseconds: 31_000)
      world.settle()
      #expect(world.text("k", on: device) == nil, "device \(device)")
    }
    #expect(world.text("k", on: 1) == nil)
    #expect(world.digest(2) == world.digest(1) && world.digest(3) == world.digest(1))
  }
}
