import KithCrypto
import Testing

@testable import KithCore

struct RosterTests {
  let fixture: Fixture

  init() throws { fixture = try Fixture() }

  @Test func theCreatorIsAMember() {
    let roster = fixture.roster(fixture.records)
    #expect(roster.sortedMembers.map(\.device) == [fixture.creator.id])
    #expect(roster.isCreator(fixture.creator.id))
    let transportKey = fixture.creator.transportPublicKey
    #expect(roster.device(withTransportKey: transportKey) == fixture.creator.id)
  }

  @Test func everyOrderGivesTheSameRoster() throws {
    let (second, third) = (deviceKeys(2), deviceKeys(3))
    let records =
      [fixture.records[0]]
      + [
        try fixture.certificate(of: second, by: fixture.creator),
        try fixture.certificate(of: third, by: second),
        try fixture.revocation(of: second.id, keeps: [third.id], by: third),
        fixture.records[1],
        try fixture.certificate(of: third, by: fixture.creator),
      ]
    let expected = fixture.roster(records)
    #expect(expected.isMember(third.id))
    #expect(!expected.isMember(second.id))
    for order in permutations(records) {
      var roster = Roster(account: fixture.account)
      for record in order { _ = roster.learn(all: [record]) }
      #expect(roster.digest == expected.digest)
      #expect(roster.records == expected.records)
      #expect(roster.sortedMembers == expected.sortedMembers)
    }
  }

  /// The creator's devices answer each for itself, and each for all that it certified.
  @Test func aDeviceAnswersForThoseThatItCertified() throws {
    let (second, third, fourth, fifth) = (
      deviceKeys(2), deviceKeys(3), deviceKeys(4), deviceKeys(5)
    )
    let roster = fixture.roster(
      fixture.records + [
        try fixture.certificate(of: second, by: fixture.creator),
        try fixture.certificate(of: third, by: second),
        try fixture.certificate(of: fourth, by: third),
        try fixture.certificate(of: fifth, by: fixture.creator),
      ])
    #expect(roster.branch(of: fixture.creator.id) == fixture.creator.id)
    for device in [second, third, fourth] { #expect(roster.branch(of: device.id) == second.id) }
    #expect(roster.branch(of: fifth.id) == fifth.id)
    #expect(roster.branch(of: deviceKeys(9).id) == deviceKeys(9).id, "unknown")
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func randomSetsInRandomOrders(seed: UInt64) throws {
    var random = SeededEntropy(seed: seed)
    let devices = [fixture.creator] + (2...7).map { deviceKeys($0) }
    var records = fixture.records
    for _ in 0..<12 {
      let (one, other) = (
        Int.random(in: 0..<7, using: &random), Int.random(in: 0..<7, using: &random)
      )
      guard one > 0 else { continue }
      records.append(try fixture.certificate(of: devices[one], by: devices[other]))
    }
    for issued in 0..<3 as Range<UInt64> {
      let keeps = devices.filter { _ in Bool.random(using: &random) }.map(\.id)
      records.append(
        try fixture.revocation(
          of: devices[Int.random(in: 0..<7, using: &random)].id, keeps: keeps,
          by: devices[Int.random(in: 0..<7, using: &random)], issued: issued))
    }
    let expected = fixture.roster(records)
    for _ in 0..<5 {
      var roster = Roster(account: fixture.account)
      for record in records.shuffled(using: &random) { _ = roster.learn(all: [record]) }
      #expect(roster.digest == expected.digest, "seed \(seed)")
      #expect(roster.sortedMembers == expected.sortedMembers, "seed \(seed)")
    }
  }

  @Test func aForgedGenesisIsRejected() throws {
    let genesis = fixture.records[0]
    var roster = Roster(account: fixture.account)
    for signature in genesis.signatures {
      let half = genesis.with(signatures: [signature])
      #expect(roster.learn(all: [half]).isEmpty && roster.pendingCount == 0)
    }
    let forged = genesis.with(
      signatures: genesis.signatures.map {
        RecordSignature(signer: $0.signer, signature: Signature(storage: .init()))
      })
    #expect(roster.learn(all: [forged]).isEmpty && roster.pendingCount == 0)
    #expect(roster.learn(all: [genesis]) == [genesis])
    #expect(roster.learn(all: [genesis]).isEmpty)
  }

  @Test func anotherAccountsRecordsAreRejected() throws {
    var entropy = SeededEntropy(seed: 5)
    let (other, records) = try Account.create(
      recovery: recoveryKey(901), keys: deviceKeys(9), name: "x", issued: 1, entropy: &entropy)
    var roster = fixture.roster(fixture.records)
    #expect(roster.learn(all: [records[0]]).isEmpty)
    #expect(roster.learn(all: [records[1]]).isEmpty)
    #expect(roster.pendingCount == 0)
    #expect(other != fixture.account)
  }

  @Test func aCertificateNeedsAMembersSignature() throws {
    var roster = fixture.roster(fixture.records)
    let stranger = deviceKeys(2)
    #expect(try roster.learn(all: [fixture.certificate(of: stranger, by: nil)]).isEmpty)
    #expect(try roster.learn(all: [fixture.certificate(of: stranger, by: stranger)]).isEmpty)
    #expect(try roster.learn(all: [fixture.certificate(of: stranger, by: deviceKeys(3))]).isEmpty)
    #expect(roster.pendingCount == 1, "it may attach later")
    #expect(!roster.isMember(stranger.id))
    #expect(roster.records.count == 2)
    let counting = try fixture.certificate(of: stranger, by: fixture.creator)
    #expect(roster.learn(all: [counting]).map(\.id) == [counting.id])
    #expect(roster.isMember(stranger.id))
  }

  @Test func aCertificateNeedsItsOwnDevicesSignature() throws {
    var roster = fixture.roster(fixture.records)
    let stranger = deviceKeys(2)
    let whole = try fixture.certificate(of: stranger, by: fixture.creator)
    let half = whole.with(signatures: whole.signatures.filter { $0.signer != stranger.id })
    #expect(roster.learn(all: [half]).isEmpty)
    #expect(!roster.isMember(stranger.id) && roster.pendingCount == 0)
    #expect(roster.learn(all: [whole]) == [whole])
  }

  @Test func whereSignaturesAreTooManyThoseOfKnownDevicesStay() throws {
    let second = deviceKeys(2)
    var roster = fixture.roster(
      fixture.records + [try fixture.certificate(of: second, by: fixture.creator)])
    let body = RecordBody.encode(
      RenameRecord(device: second.id, name: "renamed", issued: 9))
    func signed(by signers: [DeviceKeys]) throws -> Record {
      try signers.reduce(Record(body: body, signatures: [])) {
        $0.signed(by: $1.signing, account: fixture.account)
      }
    }
    // Strangers whose keys come before the member's in the order of signers.
    let strangers = (100..<400 as Range<UInt64>).map { deviceKeys($0) }
      .filter { $0.id < second.id }.prefix(MembershipLimits.signatures)
    try #require(strangers.count == MembershipLimits.signatures)
    #expect(try roster.learn(all: [signed(by: Array(strangers))]).isEmpty)
    #expect(roster.pendingCount == 1)
    #expect(try roster.learn(all: [signed(by: [second])]).map(\.body) == [body])
    #expect(roster.name(of: second.id) == "renamed")
  }

  @Test func aPendingSignerArrivesLater() throws {
    let (second, third) = (deviceKeys(2), deviceKeys(3))
    var roster = fixture.roster(fixture.records)
    let late = try fixture.certificate(of: second, by: fixture.creator)
    let early = try fixture.certificate(of: third, by: second)
    #expect(roster.learn(all: [early]).isEmpty)
    #expect(roster.pendingCount == 1)
    #expect(roster.learn(all: [late]).map(\.id) == [late, early].map(\.id).sorted())
    #expect(roster.chain(of: third.id).map(\.id) == [fixture.records[0], late, early].map(\.id))
    let again = try fixture.certificate(of: third, by: fixture.creator)
    let before = try #require(roster.record(again.id))
    let improved = roster.learn(all: [again])
    #expect(improved.map(\.id) == [again.id])
    #expect(improved.first.map { $0.signatures.count > before.signatures.count } == true)
    #expect(roster.chain(of: third.id).count == 2)
  }

  @Test func oneDeviceHasOneSetOfKeys() throws {
    var entropy = SeededEntropy(seed: 2)
    let seed = SigningSeed(random: &entropy)
    func keys(_ other: UInt64) -> DeviceKeys {
      var entropy = SeededEntropy(seed: other)
      return DeviceKeys(
        signingSeed: seed, boxSeed: BoxSeed(random: &entropy),
        transport: TransportPrivateKey(random: &entropy))
    }
    let both = try [keys(10), keys(11)].map {
      try fixture.certificate(of: $0, by: fixture.creator)
    }
    let winner = try #require(both.min { $0.id < $1.id })
    for order in permutations(both) {
      let roster = fixture.roster(fixture.records + order)
      let certificate = try #require(roster.certificate(of: keys(10).id))
      #expect(winner.kind == .certificate(certificate))
    }
    let roster = fixture.roster(fixture.records + [both[0]])
    #expect(throws: JoinError.keysInUse) {
      try JoinRequest.verify(both[1], roster: roster)
    }
  }

  @Test func revocationsOnlyAdd() throws {
    let (second, third) = (deviceKeys(2), deviceKeys(3))
    let base =
      fixture.records + [
        try fixture.certificate(of: second, by: fixture.creator),
        try fixture.certificate(of: third, by: second),
      ]
    let first = try fixture.revocation(of: second.id, by: fixture.creator)
    #expect(!fixture.roster(base + [first]).isMember(third.id))
    // The revoked device cannot take its own device back in, nor anyone with a void signature.
    let back = try fixture.revocation(
      of: second.id, keeps: [third.id, deviceKeys(4).id], by: second, issued: 9)
    let sybil = try fixture.certificate(of: deviceKeys(4), by: second)
    let roster = fixture.roster(base + [first, back, sybil])
    #expect(roster.sortedMembers.map(\.device) == [fixture.creator.id])
    #expect(roster.isRevoked(second.id))
    #expect(throws: JoinError.revoked) {
      try JoinRequest.verify(fixture.certificate(of: second, by: nil), roster: roster)
    }
    // A revocation by someone without any path does not count.
    let stray = try fixture.revocation(of: fixture.creator.id, by: deviceKeys(8))
    #expect(fixture.roster(base + [stray]).isMember(fixture.creator.id))
  }

  @Test func pendingRecordsAreBounded() throws {
    var roster = fixture.roster(fixture.records)
    let stray = deviceKeys(50)
    for issued in 0..<300 as Range<UInt64> {
      _ = try roster.learn(all: [fixture.revocation(of: stray.id, by: stray, issued: issued)])
    }
    #expect(roster.pendingCount == MembershipLimits.pendingRecords)
    #expect(roster.records.count == 2)
  }
}
