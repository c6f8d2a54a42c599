import KithCrypto
import Testing

@testable import KithCore

/// The messages of a session with an unknown static key: membership, and little of it
/// (`Docs/Protocol/listening.md`, "Unknown peers").
@Suite struct StrangerTests {
  /// Records that a message carries.
  private func records(in effects: [Effect], to session: SessionID, _ world: TestWorld) -> [Record]
  {
    effects.flatMap { effect -> [Record] in
      guard case .send(session, let message) = effect,
        case .records(let records)? = InboundMessage(decoding: message, account: world.account)?
          .body
      else { return [] }
      return records.map(\.record)
    }
  }

  private func bytes(_ records: [Record]) -> Int { records.reduce(0) { $0 + $1.encoded.count } }

  /// An account whose first device knows more records than a stranger is sent.
  private func largeAccount(seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed)
    for _ in 0..<50 { _ = try enrol(by: world) }
    try #require(bytes(world.devices[0].replica.roster.records) > Limits.strangerBytes * 3 / 2)
    return world
  }

  /// Has the first device take in a further one. The first device does not hear of it again.
  private func enrol(by world: TestWorld) throws -> [Effect] {
    let keys = Founder.makeKeys(&world.random)
    let request = try JoinRequest.make(
      account: world.account, keys: keys, name: "enrolled", issued: 4)
    let replica = world.devices[0].replica
    let fresh = try JoinRequest.accept(
      request, roster: replica.roster, keyring: replica.keyring, keys: replica.keys,
      entropy: &world.random)
    let effects = world.devices[0].replica.handle(.learn(fresh), at: world.instant(of: 0))
    for case .persist(let mutations) in effects {
      for mutation in mutations { world.devices[0].disk.apply(mutation) }
    }
    return effects
  }

  private func connectStranger(
    to world: TestWorld, underOlderEpoch: Bool = false
  ) -> (session: SessionID, effects: [Effect]) {
    let session = SessionID(rawValue: 1_000)
    let keys = Founder.makeKeys(&world.random)
    var peer = SessionPeer(
      transportKey: keys.transportPublicKey,
      hello: world.devices[1].replica.hello(port: 0, at: world.instant(of: 1)), isDialled: false,
      address: "192.0.2.1:4114")
    peer.isMembershipOnly = underOlderEpoch
    let effects = world.devices[0].replica.handle(
      .connected(session, peer), at: world.instant(of: 0))
    return (session, effects)
  }

  private func hand(
    _ records: [Record], to device: TestWorld.Device, on session: SessionID, _ world: TestWorld
  ) {
    var message = WireMessage()
    message.records.records = records.map(\.wire)
    guard
      let inbound = InboundMessage(decoding: message.encodedBytes(), account: world.account)
    else {
      Issue.record("malformed records")
      return
    }
    _ = device.replica.handle(.received(session, inbound), at: world.now)
  }

  @Test func `a stranger is sent the own path alone, whatever is learnt meanwhile`() throws {
    let world = try largeAccount(seed: 180)
    var (session, effects) = connectStranger(to: world)
    let chain = world.devices[0].replica.roster.chain(of: world.devices[0].keys.id)
    #expect(records(in: effects, to: session, world).map(\.id) == chain.map(\.id))
    for _ in 0..<40 { effects += try enrol(by: world) }
    #expect(records(in: effects, to: session, world).count == chain.count)
    // Nothing but records goes there.
    for case .send(session, let message) in effects {
      guard case .records? = InboundMessage(decoding: message, account: world.account)?.body else {
        Issue.record("a stranger was sent something else")
        continue
      }
    }
  }

  /// A revoked device holds the older keys, and may use any static key and name.
  @Test func `a stranger under an older epoch read the records of the account`() throws {
    let world = try largeAccount(seed: 186)
    var (session, effects) = connectStranger(to: world, underOlderEpoch: true)
    effects += try enrol(by: world)
    #expect(records(in: effects, to: session, world).isEmpty)
    #expect(effects.allSatisfy { if case .send(session, _) = $0 { false } else { true } })
  }

  /// Records that only a known, revoked device signed have a place in the account's history, and room
  /// of their own. A stranger brought any number of them.
  @Test func `a stranger hands in revocations and its proof alone`() throws {
    let world = try TestWorld(devices: 3, seed: 187)
    let (first, liar) = (world.devices[0], world.devices[1].keys)
    world.perform(.revoke(liar.id, keeping: []), on: 0)
    let (session, _) = connectStranger(to: world, underOlderEpoch: true)
    let before = first.replica.roster.digest
    let rename = try Record(
      body: RecordBody.encode(
        RenameRecord(device: liar.id, name: "renamed", issued: 9)), signatures: []
    ).signed(by: liar.signing, account: world.account)
    let mate = try JoinRequest.make(
      account: world.account, keys: Founder.makeKeys(&world.random), name: "mate", issued: 9
    ).signed(by: liar.signing, account: world.account)
    hand([rename, mate], to: first, on: session, world)
    #expect(first.replica.roster.digest == before)
    #expect(first.replica.roster.pendingCount == 0)
    let revocation = try Record(
      body: RecordBody.encode(
        RevocationRecord(device: world.devices[2].keys.id, keeps: [], issued: 9)), signatures: []
    ).signed(by: liar.signing, account: world.account)
    hand([revocation], to: first, on: session, world)
    #expect(first.replica.roster.isRevoked(world.devices[2].keys.id))
  }

  @Test func `a device whose enroller was revoked is told by which revocation it is no member`()
    throws
  {
    let world = try TestWorld(devices: 2, seed: 188)
    try world.join(by: 1)
    let orphan = world.devices[2]
    world.perform(.revoke(world.devices[1].keys.id, keeping: []), on: 0)
    world.connect(2, 0, underOlderEpoch: true)
    while world.deliverOne() {}
    // It is known from now on, so that a member revokes it.
    #expect(world.devices[0].replica.roster.orphans == [orphan.keys.id])
    #expect(orphan.replica.roster.isRevoked(world.devices[1].keys.id))
    #expect(!orphan.replica.roster.isMember(orphan.keys.id))
  }

  @Test func `a stranger that goes on sending records is not listened to`() throws {
    let world = try largeAccount(seed: 181)
    let (session, _) = connectStranger(to: world)
    var message = WireMessage()
    for record in world.devices[0].replica.roster.records.prefix(8) {
      message.records.records.append(try WireRecord(serializedBytes: record.encoded))
    }
    let inbound = try #require(
      InboundMessage(decoding: message.encodedBytes(), account: world.account))
    var taken = 0
    var reason: CloseReason?
    while reason == nil, taken < 100 {
      let effects = world.devices[0].replica.handle(
        .received(session, inbound), at: world.instant(of: 0))
      for case .close(session, let why) in effects { reason = why }
      if reason == nil { taken += 1 }
    }
    #expect(reason == .notMember)
    #expect(taken * (inbound.size + Limits.recordsMessageCost) <= Limits.strangerBytes * 5 / 4)
    #expect(world.devices[0].replica.links[session] == nil)
  }

  @Test
  func `a peer that proves to be a member is sent the records that were kept from a stranger`()
    throws
  {
    let world = try largeAccount(seed: 182)
    // Only device 1 knows the newcomer, and neither knows of the many.
    try world.join(by: 1)
    let newcomer = world.devices.count - 1
    #expect(!world.devices[0].replica.roster.isMember(world.devices[newcomer].keys.id))
    world.connect(0, newcomer)
    world.settle()
    #expect(
      world.devices[newcomer].replica.roster.digest == world.devices[0].replica.roster.digest)
  }

  @Test func `a member's session under an older epoch carried stores`() throws {
    let world = try TestWorld(devices: 2, seed: 184)
    for index in 0...1 { world.write([set("k\(index)", 1)], on: index) }
    _ = try enrol(by: world)
    world.connect(1, 0, underOlderEpoch: true)
    // Each may send all records; the dialler's other messages are passed over.
    for index in 0...1 {
      let end = index == 0 ? 1 : 0
      for message in world.links[[0, 1]]?.ends[end].messages ?? [] {
        let body = InboundMessage(decoding: message, account: world.account)?.body
        if case .records? = body { continue }
        #expect(index == 1, "the listener sent something else")
      }
    }
    world.settle()
    let digests = world.devices.map { $0.replica.roster.digest }
    #expect(digests[0] == digests[1])
    #expect(world.view(0).count == 1 && world.view(1).count == 1)
    let status = world.devices[0].replica.status()
    #expect(status.peers.map(\.isExchanging) == [false])
    world.disconnect(0, 1)
    world.connect(1, 0)
    world.settle()
    world.checkConvergence("under the newest epoch")
    #expect(world.view(0).count == 2)
  }

  @Test func `a stranger that proves to be a member stays limited under an older epoch`() throws {
    let world = try TestWorld(devices: 2, seed: 185)
    try world.join(by: 1)
    world.connect(2, 0, underOlderEpoch: true)
    world.settle()
    #expect(world.devices[0].replica.roster.isMember(world.devices[2].keys.id))
    #expect(world.devices[0].replica.status().peers.map(\.isExchanging) == [false])
  }

  @Test func `an author over its limit was reported at every session`() throws {
    let world = try TestWorld(devices: 2, seed: 183, policy: Policy(totalBytes: 100, keys: 1))
    world.connectAll()
    world.settle()
    func reports() -> Int {
      world.devices[1].reports.count { if case .authorOverLimit = $0 { true } else { false } }
    }
    func flood() throws {
      for number in 0..<20 {
        let entry = try world.entry("k\(number)", blob(400), on: 0)
        try world.publish([entry.plaintext()], by: 0, to: 1)
      }
    }
    for _ in 0..<3 {
      try flood()
      #expect(reports() == 1)
      world.disconnectAll()
      world.connectAll()
    }
    // It changed: with another policy there is room again, for a while.
    let policy = Policy(totalBytes: 200, keys: 2)
    for index in 0...1 { world.perform(.open(TestWorld.store, policy), on: index) }
    try flood()
    try flood()
    #expect(reports() == 2)
  }
}
