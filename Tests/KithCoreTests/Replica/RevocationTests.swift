import KithCrypto
import Testing

@testable import KithCore

/// Revocation end to end (`Docs/Protocol.md`, "Membership").
@Suite struct RevocationTests {
  @Test func `a revoked device's entries live on under the revoker's name`() throws {
    let world = try TestWorld(devices: 3, seed: 700)
    world.connectAll()
    world.settle()
    world.write([set("a", 1), set("b", 2)], on: 2)
    world.settle()
    let stamps = world.devices[0].replica.stores[TestWorld.store]?.state.slots
      .mapValues { $0.newest.digest }
    world.revoke(2, by: 0)
    world.settle()
    #expect(
      world.devices[2].closed.contains(.revoked) || world.devices[0].closed.contains(.revoked))
    #expect(world.links.keys.allSatisfy { !$0.contains(2) }, "its sessions go on")
    #expect(world.text("a", on: 1) == 1 && world.text("b", on: 0) == 2)
    #expect(
      stamps
        == world.devices[1].replica.stores[TestWorld.store]?.state.slots
        .mapValues { $0.newest.digest })
    world.advance(milliseconds: 6_000)
    world.settle()
    world.checkAgreement([0, 1], without: [2], "after the revocation")
    try world.restart(0)
    try world.restart(1)
    world.meet(0, 1)
    world.settle()
    #expect(world.devices.allSatisfy { $0.replica.counters.damaged == 0 })
    world.write([set("c", 3)], on: 1)
    world.settle()
    #expect(world.text("c", on: 0) == 3)
    world.checkAgreement([0, 1], without: [2], "after a restart")
  }

  @Test func `what a revoked device told of itself counts no more`() throws {
    let world = try TestWorld(devices: 3, seed: 702)
    world.clockErrors[2] = 300_000
    world.connectAll()
    world.settle()
    let revoked = world.devices[2].replica.keys.id
    world.devices[0].replica.storesLeftOut[revoked] = StoresLeftOut(here: [TestWorld.store])
    #expect(world.devices[0].replica.clockStatus.differences.map(\.device) == [revoked])
    #expect(world.devices[0].replica.timeKeeper.time(of: revoked) != nil)
    world.revoke(2, by: 0)
    world.settle()
    for device in world.devices.prefix(2) {
      #expect(device.replica.clockStatus.differences.isEmpty)
      #expect(device.replica.timeKeeper.time(of: revoked) == nil)
      #expect(device.replica.storesLeftOut[revoked] == nil)
    }
  }

  @Test func `a peer counts nothing as covered while a revoked device's entries are withheld`()
    throws
  {
    let world = try TestWorld(devices: 5, seed: 705)
    for index in 0..<4 { for other in 0..<index { world.connect(other, index) } }
    world.settle()
    world.write([set("a", 1)], on: 3)
    world.settle()
    // Only device 1 has what device 2 writes last; it does not keep what that replaced.
    world.disconnect(0, 2)
    world.disconnect(2, 3)
    world.disconnect(1, 3)
    world.disconnect(0, 1)
    world.write([set("a", 2)], on: 2)
    world.settle()
    world.disconnectAll()
    world.revoke(2, by: 0)
    world.connect(0, 1)
    world.settle()
    world.disconnectAll()
    world.connect(1, 4)
    world.settle()
    let chain = try #require(
      world.devices[3].replica.stores[TestWorld.store]?.log.vector.keys.first {
        $0.device == world.devices[3].keys.id
      })
    #expect(
      world.devices[4].replica.stores[TestWorld.store]?.log.vector[chain] == nil,
      "covers a change set without the entry that the withheld one replaced")
    world.connect(0, 4)
    world.settle()
    #expect(world.text("a", on: 4) == 1)
    world.advance(milliseconds: 6_000)
    world.settle()
    #expect(world.text("a", on: 4) == 2)
    world.mingle([0, 1, 3, 4])
    world.checkAgreement([0, 1, 3, 4], without: [2], "after the revocation")
    #expect(world.devices.allSatisfy { $0.replica.counters.divergences == 0 })
  }

  @Test func `a batch that covers a revoked device's chain covers nothing`() throws {
    let world = try TestWorld(devices: 3, seed: 706)
    world.connectAll()
    world.settle()
    // Device 1 sends it before it knows.
    let own = try world.seal([world.entry("b", on: 1).plaintext()], by: 1, sequence: 1)
    let void = try world.seal([world.entry("a", on: 2).plaintext()], by: 2, sequence: 1)
    world.revoke(2, by: 0)
    world.settle()
    let both = [own, void].sorted { $0.reference < $1.reference }
    let covers = both.map { Cover(chain: $0.header.chain, from: 0, through: 1) }
    try world.hand(
      Batch(store: TestWorld.store, changeSets: both, covers: covers), from: 1, to: 0)
    #expect(Set(world.view(0).keys) == ["b"])
    #expect(try world.covered(of: 1, on: 0) == 0, "it may lack entries that the void one replaced")
    try world.hand([own], above: 0, from: 1, to: 0)
    #expect(try world.covered(of: 1, on: 0) == 1)
  }

  @Test func `a member that fills the roster stops nobody once it is revoked`() throws {
    let world = try TestWorld(devices: 3, seed: 790)
    world.connectAll()
    world.settle()
    world.write([set("a", 1)], on: 2)
    world.settle()
    let liar = world.devices[2]
    let flood = try (0..<UInt64(MembershipLimits.renames + 60)).map { number in
      try Record(
        body: RecordBody.encode(
          RenameRecord(device: liar.keys.id, name: "\(number)", issued: number)), signatures: []
      ).signed(by: liar.keys.signing, account: world.account)
    }
    var epochs: [Record] = []
    for _ in 0..<MembershipLimits.epochs + 20 {
      let made = liar.replica.keyring.nextEpoch(
        for: liar.replica.roster, keys: liar.keys, entropy: &world.random)
      epochs += try #require(made)
    }
    // Two devices that do not meet learn it in other orders.
    world.disconnect(0, 1)
    world.disconnect(0, 2)
    world.disconnect(1, 2)
    world.perform(.learn(flood + epochs), on: 0)
    for start in stride(from: 0, to: epochs.count, by: 30) {
      world.perform(.learn(Array(epochs.reversed().dropFirst(start).prefix(30))), on: 1)
    }
    world.perform(.learn(flood.reversed()), on: 1)
    world.revoke(2, by: 0)
    world.mingle([0, 1])
    world.checkAgreement([0, 1], without: [2], "after the flood")
    try world.join(by: 1)
    world.mingle([0, 1, 3])
    world.write([set("b", 2)], on: 3)
    world.mingle([0, 1, 3])
    #expect(world.text("b", on: 0) == 2 && world.text("a", on: 3) == 1)
    for index in [0, 1, 3] {
      let device = world.devices[index]
      #expect(
        (Set(device.disk.records.keys) == Set(device.replica.roster.records.map(\.id))) as Bool,
        "\(device.name) stores other records than it keeps")
    }
    try world.restart(0)
    world.mingle([0, 1, 3])
    world.checkAgreement([0, 1, 3], without: [2], "after a restart")
  }

  @Test func `a member that gives each epoch to a revoked device forces few`() throws {
    let world = try TestWorld(devices: 4, seed: 791)
    world.connectAll()
    world.settle()
    world.revoke(3, by: 0)
    world.settle()
    let (liar, gone) = (world.devices[2], world.devices[3])
    let friend = try #require(liar.replica.roster.certificate(of: gone.keys.id))
    var leaks = 0
    for turn in 0..<20 {
      let current = try #require(liar.replica.keyring.current, "turn \(turn)")
      let holds = liar.replica.roster.secrets(for: gone.keys.id).contains { $0.epoch == current.id }
      if !holds {
        leaks += 1
        world.perform(
          .learn(
            liar.replica.keyring.lockboxes(
              for: friend, account: world.account, keys: liar.keys, entropy: &world.random)), on: 2)
      }
      for _ in 0..<3 {
        world.advance(milliseconds: 6_000)
        world.settle()
      }
    }
    #expect((2...3 * (1 + Limits.epochsBecauseOfLeaks)).contains(leaks), "\(leaks) epochs")
    world.write([set("still", 1)], on: 1)
    world.settle()
    #expect(world.text("still", on: 0) == 1, "nobody publishes any more")
    // It is revoked in turn, and its words about others' data do not count any more.
    world.revoke(2, by: 0)
    world.settle()
    let current = try #require(world.devices[0].replica.keyring.current)
    #expect(liar.replica.keyring[current.id] == nil && gone.replica.keyring[current.id] == nil)
    world.write([set("after", 1)], on: 1)
    world.settle()
    #expect(world.text("after", on: 0) == 1)
    world.checkAgreement([0, 1], without: [2, 3], "after both left")
  }

  @Test func `a revoked device says so, reads on and writes nothing`() throws {
    let world = try TestWorld(devices: 2, seed: 701)
    world.connectAll()
    world.settle()
    world.write([set("a", 1)], on: 0)
    world.settle()
    world.revoke(1, by: 0)
    world.settle()
    #expect(world.devices[1].replica.status().isRevoked)
    #expect(world.devices[1].reports.contains(.revoked(world.id(1), by: [world.id(0)])))
    let write = world.write([set("a", 2)], on: 1)
    #expect(world.devices[1].refused[write] == .revoked)
    #expect(world.text("a", on: 1) == 1)
    #expect(world.meet(1, 0) == .none)
    try world.restart(1)
    #expect(world.devices[1].replica.status().isRevoked)
    #expect(world.text("a", on: 1) == 1)
    world.revoke(0, by: 1)
    #expect(world.devices[1].refusedMembership == [.notAMember])
  }

  @Test func `a device that was offline learns of its revocation, and is told nothing else`() throws
  {
    let world = try TestWorld(devices: 3, seed: 702)
    world.mingle([0, 1, 2])
    world.revoke(2, by: 0)
    world.mingle([0, 1])
    let records = world.devices[2].replica.roster.records.count
    #expect(world.meet(2, 0) == .membershipOnly)
    world.settle()
    #expect(world.devices[2].replica.status().isRevoked)
    #expect(world.devices[2].replica.roster.records.count == records + 1)
    world.disconnect(0, 2)
    // Everybody has moved on, and it was told: nobody takes the old key any more.
    #expect(world.devices[0].replica.handshakeEpochs(at: world.now).count == 1)
  }

  @Test func `under a partition a revocation holds for everyone once they meet`() throws {
    let world = try TestWorld(devices: 4, seed: 703)
    world.mingle([0, 1, 2, 3])
    world.write([set("before", 1)], on: 2)
    world.mingle([2, 3], rounds: 1)
    world.revoke(2, by: 0)
    world.mingle([0, 1])
    // On the other side nobody knows yet.
    world.write([set("after", 2)], on: 2)
    world.mingle([2, 3], rounds: 1)
    world.write([set("own", 3)], on: 3)
    #expect(world.text("after", on: 3) == 2)
    world.mingle([0, 1, 3])
    // Change sets that were accepted in good faith are carried over.
    #expect(world.text("before", on: 0) == 1 && world.text("after", on: 1) == 2)
    #expect(world.text("own", on: 0) == 3)
    world.checkAgreement([0, 1, 3], without: [2], "after the partition")
    world.mingle([0, 1, 2, 3])
    #expect(world.devices[2].replica.status().isRevoked)
    world.checkAgreement([0, 1, 3], without: [2], "after it came back")
  }

  @Test func `enrolments by a revoked device count no more, however dated`() throws {
    let world = try TestWorld(devices: 4, seed: 704)
    world.mingle([0, 1, 2, 3])
    world.revoke(2, by: 0)
    world.mingle([0, 1])
    world.devices[2].replica.members.ignoresItsRevocation = true
    try world.join(by: 2)
    world.write([set("sybil", 1)], on: 4)
    // A device that has not heard of the revocation yet takes it for a member.
    world.mingle([2, 3, 4])
    #expect(world.text("sybil", on: 3) == 1)
    world.visit(4, 0)
    #expect(!world.devices[0].replica.roster.isMember(world.id(4)))
    #expect(world.text("sybil", on: 0) == nil)
    world.mingle([0, 1, 3])
    world.checkAgreement([0, 1, 3], without: [2, 4], "after all have heard")
    #expect(world.devices[3].replica.roster.isRevoked(world.id(4)))
    world.visit(4, 3)
    #expect(world.devices[4].replica.status().isRevoked)
  }

  @Test func `a new incarnation of a revoked device changes nothing`() throws {
    let world = try TestWorld(devices: 3, seed: 705)
    world.mingle([0, 1, 2])
    world.revoke(2, by: 0)
    world.mingle([0, 1])
    try world.restart(2, isCopy: true)
    world.devices[2].replica.members.ignoresItsRevocation = true
    world.write([set("back", 1)], on: 2)
    world.mingle([0, 1, 2])
    #expect(world.text("back", on: 0) == nil && world.text("back", on: 1) == nil)
    world.checkAgreement([0, 1], without: [2], "a new incarnation")
  }

  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func `in any order of meeting all get the new epoch`(seed: UInt64) throws {
    let world = try TestWorld(devices: 5, seed: 710 + seed)
    world.mingle([0, 1, 2, 3, 4], rounds: 2)
    for index in 0..<5 { world.write([set("k\(index)", 1)], on: index) }
    world.mingle([0, 1, 2, 3, 4], rounds: 1)
    world.revoke(4, by: Int(seed % 4))
    for index in 0..<4 { world.write([set("k\(index)", 2)], on: index) }
    for _ in 0..<40 {
      let a = Int.random(in: 0..<5, using: &world.random)
      let b = Int.random(in: 0..<5, using: &world.random)
      if a != b { world.visit(a, b) }
    }
    world.mingle([0, 1, 2, 3])
    world.checkAgreement([0, 1, 2, 3], without: [4], "seed \(seed)")
    for index in 0..<4 { #expect(world.text("k\(index)", on: 0) == 2, "seed \(seed)") }
    #expect(world.text("k4", on: 0) == 1)
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func `two revocations at once both hold`(seed: UInt64) throws {
    let world = try TestWorld(devices: 5, seed: 730 + seed)
    world.mingle([0, 1, 2, 3, 4], rounds: 2)
    world.write([set("a", 1)], on: 0)
    world.write([set("b", 1)], on: 1)
    world.mingle([0, 1, 2, 3, 4], rounds: 1)
    world.revoke(1, by: 0, keeping: Set((0..<5).map(world.id)))
    world.revoke(0, by: 1, keeping: Set((0..<5).map(world.id)))
    let order = [(0, 2), (1, 2), (0, 3), (1, 3)].shuffled(using: &world.random)
    for (a, b) in order { world.visit(a, b) }
    world.mingle([0, 1, 2, 3, 4])
    world.mingle([2, 3, 4])
    world.checkAgreement([2, 3, 4], without: [0, 1], "seed \(seed)")
    #expect(world.text("a", on: 4) == 1 && world.text("b", on: 4) == 1)
    #expect(world.devices[0].replica.status().isRevoked)
    #expect(world.devices[1].replica.status().isRevoked)
  }

  @Test func `two that revoke the same device make epochs that cross`() throws {
    let world = try TestWorld(devices: 4, seed: 740)
    world.mingle([0, 1, 2, 3])
    world.revoke(3, by: 0)
    world.revoke(3, by: 1)
    world.write([set("a", 1)], on: 0)
    world.write([set("b", 1)], on: 1)
    world.mingle([0, 1, 2])
    world.checkAgreement([0, 1, 2], without: [3], "crossing epochs")
    #expect(world.text("a", on: 2) == 1 && world.text("b", on: 2) == 1)
  }

  @Test func `a device that missed several epochs catches up`() throws {
    let world = try TestWorld(devices: 6, seed: 741)
    world.mingle(Array(0..<6), rounds: 2)
    for gone in 3...5 {
      world.revoke(gone, by: 0)
      world.write([set("k\(gone)", 1)], on: 0)
      world.mingle([0, 1], rounds: 1)
      world.write([set("other\(gone)", 1)], on: 1)
      world.mingle([0, 1], rounds: 1)
    }
    world.mingle([0, 1, 2])
    world.checkAgreement([0, 1, 2], without: [3, 4, 5], "several epochs")
    #expect(world.view(2).count == 6)
  }

  @Test func `drafts that waited for an epoch go out`() throws {
    let world = try TestWorld(devices: 3, seed: 742)
    world.mingle([0, 1, 2])
    // Only the records come, without the epoch that follows.
    let revoker = world.devices[0].replica
    let revocation = try revoker.roster.revoking(
      world.id(2), keeping: [], at: 9, keys: revoker.keys)
    world.meet(0, 1)
    world.settle()
    world.perform(.learn(revocation), on: 0)
    world.settle()
    world.write([set("a", 1)], on: 1)
    #expect(world.devices[1].replica.hasUnpublished(TestWorld.store))
    world.advance(milliseconds: 6_000)
    world.settle()
    #expect(!world.devices[1].replica.hasUnpublished(TestWorld.store))
    #expect(world.text("a", on: 0) == 1)
    world.checkAgreement([0, 1], without: [2], "a new epoch")
  }

  /// The revoked device's own code ignores that it is revoked, and it kept every key; a member that
  /// learns late serves it until then.
  @Test func `a revoked device that ignores it reads nothing new and writes nothing`() throws {
    let world = try TestWorld(devices: 4, seed: 743)
    world.mingle([0, 1, 2, 3])
    world.write([set("old", 1)], on: 0)
    world.mingle([0, 1, 2, 3], rounds: 1)
    world.devices[2].replica.members.ignoresItsRevocation = true
    world.revoke(2, by: 0)
    world.mingle([0, 1])
    world.write([set("secret", 1)], on: 0)
    world.write([set("forged", 1)], on: 2)
    world.mingle([2, 3], rounds: 1)
    #expect(world.text("forged", on: 3) == 1, "the late one serves it")
    world.mingle([0, 1, 2])
    #expect(world.text("forged", on: 0) == nil)
    #expect(world.text("secret", on: 2) == nil)
    // Now the late one learns.
    world.mingle([0, 1, 3])
    world.write([set("secret2", 1)], on: 3)
    world.write([set("forged2", 1)], on: 2)
    world.mingle([0, 1, 2, 3])
    world.checkAgreement([0, 1, 3], without: [2], "colluding")
    #expect(world.text("forged", on: 0) == 1, "what was accepted in good faith stays")
    #expect(world.text("forged2", on: 0) == nil && world.text("forged2", on: 3) == nil)
    #expect(world.text("secret", on: 2) == nil && world.text("secret2", on: 2) == nil)
    // Even with all that the others hold, it opens nothing that was sealed after the revocation.
    let thief = world.devices[2].replica.keyring
    let kept = world.devices[3].disk.stores[TestWorld.store]?.changeSets ?? [:]
    let newest = try #require(world.devices[0].replica.keyring.current)
    #expect(thief[newest.id] == nil)
    for key in ["secret", "secret2"] {
      let location = world.devices[3].replica.stores[TestWorld.store]?.state.slots[Key(key)]?.newest
        .location
      let header = try #require(location.flatMap { kept[$0.changeSet] }).header
      let epoch = try ChangeSetHeader(decoding: header).epoch
      #expect(thief[epoch] == nil)
    }
    // And its change sets, handed in by hand, change nothing and are not asked for again.
    world.meet(0, 3)
    world.settle()
    let before = world.digest(0)
    let forged = try world.seal(
      [try world.entry("forged3", 1, on: 2).plaintext()], by: 2, sequence: 99)
    try world.hand([forged], above: 0, from: 3, to: 0)
    world.settle()
    #expect(world.digest(0) == before && world.text("forged3", on: 0) == nil)
    #expect(!world.keepsChains(of: 2, on: 0))
    #expect(world.devices[0].replica.counters.rejected == 0)
  }

  @Test func `devices that a revoked one enrolled stay if they are listed`() throws {
    let world = try TestWorld(devices: 2, seed: 744)
    world.mingle([0, 1])
    try world.join(by: 1)
    try world.join(by: 2)
    try world.join(by: 1)
    world.mingle([0, 1, 2, 3, 4])
    let roster = world.devices[0].replica.roster
    #expect(roster.dependents(of: world.id(1)) == [2, 3, 4].map(world.id).sorted())
    // 3 stays, which 2 enrolled, which goes.
    world.revoke(1, by: 0, keeping: [world.id(3)])
    world.mingle([0, 3])
    let then = world.devices[0].replica.roster
    #expect(then.isMember(world.id(3)))
    for gone in [1, 2, 4] { #expect(then.isRevoked(world.id(gone))) }
    world.checkAgreement([0, 3], without: [1, 2, 4], "some stay")
    // A device that revokes the device that enrolled it stays a member itself.
    world.revoke(0, by: 3)
    #expect(world.devices[3].replica.roster.isMember(world.id(3)))
  }

  @Test func `a certificate that claims another's transport key takes no session`() throws {
    let world = try TestWorld(devices: 3, seed: 745)
    let victim = world.devices[1].keys
    var random = SeededEntropy(seed: 1)
    for _ in 0..<8 {
      // Some of the ids are smaller than the victim's.
      let signing = SigningKey(seed: SigningSeed(random: &random))
      let certificate = try #require(
        Certificate(
          device: signing.publicKey, boxKey: BoxKey(seed: BoxSeed(random: &random)).publicKey,
          transportKey: victim.transportPublicKey, name: "thief", issued: 0))
      let record = try Record(body: RecordBody.encode(certificate), signatures: [])
        .signed(by: signing, account: world.account)
        .signed(by: world.devices[2].keys.signing, account: world.account)
      world.perform(.learn([record]), on: 0)
    }
    world.meet(0, 1)
    world.settle()
    let peers = world.devices[0].replica.status().peers
    #expect(peers.compactMap(\.device) == [victim.id])
    // Revoking one of them does not shut the victim out.
    let thief = try #require(
      world.devices[0].replica.roster.sortedMembers.first { $0.name == "thief" })
    world.disconnectAll()
    world.perform(.revoke(thief.device, keeping: []), on: 0)
    world.visit(0, 1)
    world.meet(0, 1)
    world.settle()
    #expect(world.devices[0].replica.status().peers.compactMap(\.device) == [victim.id])
  }

  @Test func `names are what a member called a device last`() throws {
    let world = try TestWorld(devices: 3, seed: 746)
    world.perform(.rename(world.id(1), "laptop"), on: 0)
    world.advance(milliseconds: 5)
    world.perform(.rename(world.id(1), "desk"), on: 2)
    world.mingle([0, 1, 2], rounds: 1)
    for device in world.devices {
      #expect(device.replica.roster.name(of: world.id(1)) == "desk")
    }
    world.perform(.rename(world.id(1), ""), on: 0)
    world.perform(.rename(Founder.makeKeys(&world.random).id, "x"), on: 0)
    #expect(world.devices[0].refusedMembership == [.invalidName, .unknownDevice])
    // A name that a revoked device gave another does not count any more.
    world.revoke(2, by: 0)
    #expect(world.devices[0].replica.roster.name(of: world.id(1)) == "laptop")
  }
}
