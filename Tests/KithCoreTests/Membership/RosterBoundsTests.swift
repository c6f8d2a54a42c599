import KithCrypto
import Testing

@testable import KithCore

/// The records that a roster keeps if there are too many.
struct RosterBoundsTests {
  var fixture: Fixture
  let honest = deviceKeys(2)
  let liar = deviceKeys(3)
  /// The account with both devices in it.
  let base: [Record]
  let revocation: Record

  init() throws {
    fixture = try Fixture()
    base =
      fixture.records + [
        try fixture.certificate(of: honest, by: fixture.creator),
        try fixture.certificate(of: liar, by: fixture.creator),
      ]
    revocation = try fixture.revocation(of: liar.id, by: fixture.creator)
  }

  private func rename(_ number: UInt64, by signer: DeviceKeys) throws -> Record {
    let body = RecordBody.encode(
      RenameRecord(device: signer.id, name: "name \(number)", issued: number))
    return try Record(body: body, signatures: [])
      .signed(by: signer.signing, account: fixture.account)
  }

  private mutating func epoch(
    _ generation: UInt32, parents: [EpochID], by signer: DeviceKeys
  ) throws -> (record: Record, id: EpochID) {
    let keys = EpochKeys(
      secret: EpochSecret(random: &fixture.entropy), generation: generation)
    guard case .genesis(let genesis) = fixture.records[0].kind else { throw TestError() }
    let members = [fixture.creator, honest, liar].compactMap {
      Certificate(of: $0, name: "device", issued: 2)
    }
    let record = Keyring.record(
      of: keys, parents: parents, recipients: members, genesis: genesis,
      account: fixture.account, signing: signer.signing, entropy: &fixture.entropy)
    return (try #require(record), keys.id)
  }

  private struct TestError: Error {}

  private func checked(_ records: [Record]) -> [CheckedRecord] {
    records.map { CheckedRecord($0, account: fixture.account) }
  }

  /// Both send all that they keep, in pieces, until their digests are equal.
  private func exchange(_ one: inout Roster, _ other: inout Roster) -> Int {
    for round in 0..<4 {
      if one.digest == other.digest { return round }
      let (ours, theirs) = (checked(one.records), checked(other.records))
      for start in stride(from: 0, to: theirs.count, by: 100) {
        _ = one.update(with: Array(theirs[start..<min(start + 100, theirs.count)]))
      }
      for start in stride(from: 0, to: ours.count, by: 100) {
        _ = other.update(with: Array(ours[start..<min(start + 100, ours.count)]))
      }
    }
    return .max
  }

  private func learn(_ records: [CheckedRecord], inPieces size: Int) -> Roster {
    var roster = Roster(account: fixture.account)
    for start in stride(from: 0, to: records.count, by: size) {
      _ = roster.update(with: Array(records[start..<min(start + size, records.count)]))
    }
    return roster
  }

  @Test func aFloodOfOneSignerTakesNoRoomOfTheOthers() throws {
    let flood = checked(
      try (0..<UInt64(MembershipLimits.renames + 200)).map { try rename($0, by: liar) })
    let few = checked(try (0..<5 as Range<UInt64>).map { try rename($0, by: honest) })
    let start = checked(base)
    // It comes first, last, and is met in halves.
    var one = learn(start + flood + few, inPieces: 90)
    var other = learn(start + few + flood.reversed(), inPieces: 70)
    #expect(one.digest == other.digest)
    #expect(few.allSatisfy { one.record($0.record.id) != nil })
    let renames = one.records.count - base.count
    #expect(renames == MembershipLimits.renames)
    // Once it is revoked its records have a share that is free otherwise.
    _ = one.update(with: checked([revocation]))
    #expect(
      one.records.count
        == base.count + 1 + few.count + MembershipLimits.renames / MembershipLimits.shareOfRevoked)
    #expect(exchange(&one, &other) <= 1)
    // Two that each gave up other records agree once they met, and that is no new record for either.
    let half = flood.count / 2
    var early = learn(start + flood[..<half], inPieces: 90)
    var late = learn(start + flood[half...] + few, inPieces: 90)
    #expect(exchange(&early, &late) <= 1)
    #expect(early.records == learn(start + flood + few, inPieces: 90).records)
    #expect(early.update(with: flood).fresh.isEmpty)
  }

  /// A flood had the whole roster chosen anew for each message, also one that brought nothing: with
  /// thousands of records held back 22 to 48 ms each.
  @Test func whatIsHeldBackIsNoPartOfTheWork() throws {
    let flood = checked(
      try (0..<UInt64(MembershipLimits.renames + MembershipLimits.deferredRecords)).map {
        try rename($0, by: liar)
      })
    let start = checked(base)
    var roster = learn(start + flood, inPieces: 500)
    #expect(roster.pendingCount > MembershipLimits.deferredRecords - 512)
    let more = checked(try (0..<40 as Range<UInt64>).map { try rename(1 << 40 + $0, by: liar) })
    let clock = ContinuousClock()
    // The least of three: others use the machine, too.
    let whole = (0..<3).map { _ in
      clock.measure {
        var fresh = Roster(account: fixture.account)
        _ = fresh.update(with: start + flood)
      }
    }.min()
    let known = (0..<3).map { _ in
      clock.measure {
        for _ in 0..<1_000 {
          _ = roster.update(with: [start[0]])
          _ = roster.update(with: [])
        }
      }
    }.min()
    let each = (0..<3).map { round in
      clock.measure {
        for record in more[(round * 10)..<(round * 10 + 10)] { _ = roster.update(with: [record]) }
      }
    }.min()
    print(
      "one roster of \(flood.count): \(whole ?? .zero); 10 renames: \(each ?? .zero); "
        + "2,000 times nothing new: \(known ?? .zero)")
    #expect(try #require(known) < #require(whole))
    // Ten times the whole it was.
    #expect(try #require(each) < #require(whole) * 6)
    #expect(
      roster.digest == learn(start + flood + more[..<30], inPieces: 5_000).digest)
  }

  @Test func recordsThatWereHeldBackHavePlacesOnceThereIsRoom() throws {
    let (many, more) = (
      checked(try (0..<400 as Range<UInt64>).map { try rename($0, by: liar) }),
      checked(try (0..<400 as Range<UInt64>).map { try rename($0, by: honest) })
    )
    let start = checked(base)
    var roster = learn(start + many + more, inPieces: 70)
    #expect(roster.pendingCount == 800 - MembershipLimits.renames)
    _ = roster.update(with: checked([revocation]))
    #expect(more.allSatisfy { roster.record($0.record.id) != nil })
    #expect(
      roster.digest
        == learn(start + checked([revocation]) + many + more, inPieces: 1_000).digest)
    // One that a peer has room for is looked at again, also if it was held back here.
    let back = try #require(many.first { roster.record($0.record.id) == nil })
    #expect(roster.update(with: [back]).fresh.isEmpty)
  }

  @Test mutating func aFloodOfEpochsKeepsOutNoNextOne() throws {
    guard case .epoch(let first) = fixture.records[1].kind else { throw TestError() }
    var flood: [Record] = []
    for _ in 0..<MembershipLimits.epochs + 40 {
      flood.append(try epoch(2, parents: [first.id], by: liar).record)
    }
    var roster = learn(checked(base + flood), inPieces: 50)
    #expect(roster.epochRecords.count == MembershipLimits.epochs)
    #expect(roster.record(fixture.records[1].id) != nil, "the first epoch lost its place")
    _ = roster.update(with: checked([revocation]))
    var keyring = Keyring()
    keyring.refresh(from: roster, keys: fixture.creator)
    let made = keyring.nextEpoch(
      for: roster, keys: fixture.creator, entropy: &fixture.entropy)
    let next = try #require(made)
    _ = roster.update(with: checked(next))
    keyring.refresh(from: roster, keys: fixture.creator)
    #expect(keyring.current?.generation == 3)
    #expect(
      roster.epochRecords.count
        == 2 + MembershipLimits.epochs / MembershipLimits.shareOfRevoked)
    // A roster that learns all of it in another order is the same.
    #expect(
      learn(checked(next + [revocation] + flood + base), inPieces: 60).digest == roster.digest)
  }

  @Test func whomARevokedDeviceEnrolledMakesWay() throws {
    let sybils = checked(
      try (0..<UInt64(MembershipLimits.certificates + 20)).map {
        try fixture.certificate(of: deviceKeys(10_000 + $0), by: liar)
      })
    // Deeper than those that the liar enrolled.
    let (third, fourth) = (deviceKeys(4), deviceKeys(5))
    let deep = checked([
      try fixture.certificate(of: third, by: honest),
      try fixture.certificate(of: fourth, by: third),
    ])
    let start = checked(base)
    var one = learn(start + deep + sybils, inPieces: 100)
    var other = learn(start + sybils.reversed() + deep, inPieces: 100)
    #expect(one.digest == other.digest)
    #expect(one.records.count == fixture.records.count + MembershipLimits.certificates)
    #expect(!one.isMember(fourth.id), "there is room, so this shows nothing")
    let after = checked([revocation])
    _ = one.update(with: after)
    #expect(one.isMember(third.id) && one.isMember(fourth.id))
    #expect(one.sortedMembers.count == 4)
    let late = checked([try fixture.certificate(of: deviceKeys(6), by: fourth)])
    _ = one.update(with: late)
    #expect(one.isMember(deviceKeys(6).id))
    #expect(exchange(&one, &other) <= 1)
    #expect(other.isMember(fourth.id) && other.isRevoked(liar.id))
  }

  @Test func revocationsBeyondTheBoundBringNobodyBack() throws {
    let (third, mate) = (deviceKeys(4), deviceKeys(5))
    let start =
      base + [
        try fixture.certificate(of: third, by: liar), try fixture.certificate(of: mate, by: liar),
      ]
    // The revoked device signs many that list its mate: those with the smallest ids push the others out.
    let flood = checked(
      try (0..<60 as Range<UInt64>).map {
        try fixture.revocation(of: liar.id, keeps: [mate.id], by: liar, issued: 100 + $0)
      })
    let first = try #require(
      try (0..<20 as Range<UInt64>)
        .map {
          try fixture.revocation(
            of: liar.id, keeps: [third.id], by: fixture.creator, issued: $0)
        }
        .first { candidate in
          flood.count { $0.record.id < candidate.id } >= MembershipLimits.revocationsOfDevice
        })
    #expect(learn(checked(start + [first]), inPieces: 9).isMember(third.id))
    var expected: Digest256?
    for seed in 1...5 as ClosedRange<UInt64> {
      var random = SeededEntropy(seed: seed)
      let roster = learn(
        (checked(start + [first]) + flood).shuffled(using: &random), inPieces: 7)
      #expect(roster.isRevoked(liar.id))
      #expect(!roster.isMember(mate.id), "seed \(seed)")
      #expect(roster.records.count == start.count + MembershipLimits.revocationsOfDevice)
      #expect(roster.digest == expected ?? roster.digest, "seed \(seed)")
      expected = roster.digest
    }
  }

  @Test func revocationsOfUnknownDevicesWait() throws {
    let unknown = deviceKeys(60)
    var roster = fixture.roster(base)
    for issued in 0..<300 as Range<UInt64> {
      _ = try roster.learn(all: [fixture.revocation(of: unknown.id, by: liar, issued: issued)])
    }
    #expect(roster.records.count == base.count)
    #expect(roster.pendingCount == MembershipLimits.pendingRecords)
    let counting = try fixture.certificate(of: unknown, by: honest)
    #expect(roster.learn(all: [counting]).contains { $0.id == counting.id })
    #expect(roster.isRevoked(unknown.id) && !roster.isMember(unknown.id))
  }

  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func rostersThatGaveUpDifferentRecordsAgreeAfterAnExchange(seed: UInt64) throws {
    var random = SeededEntropy(seed: seed)
    var copy = self
    guard case .epoch(let first) = fixture.records[1].kind else { throw TestError() }
    var pool: [Record] = []
    for number in 0..<150 as Range<UInt64> {
      let signer =
        Bool.random(using: &random)
        ? liar
        : Bool.random(using: &random)
          ? honest : fixture.creator
      pool.append(
        number < 100
          ? try copy.epoch(2 + UInt32(number % 3), parents: [first.id], by: signer).record
          : try rename(number, by: signer))
    }
    for _ in 0..<80 { pool.append(try copy.epoch(2, parents: [first.id], by: liar).record) }
    let all = checked(pool)
    func half() -> [CheckedRecord] {
      let isToldOfRevocation = Bool.random(using: &random)
      return
        (checked(base + (isToldOfRevocation ? [revocation] : []))
        + all.filter { _ in Int.random(in: 0..<4, using: &random) > 0 }).shuffled(using: &random)
    }
    var one = learn(half(), inPieces: 30)
    var other = learn(half(), inPieces: 30)
    let rounds = exchange(&one, &other)
    #expect(rounds <= 2, "seed \(seed)")
    #expect(one.records == other.records, "seed \(seed)")
    #expect(one.epochRecords.count <= MembershipLimits.epochs)
  }
}
