import KithCrypto
import Testing

@testable import KithCore

/// A device's reaction to records, and the records that it owes the account.
@Suite struct MembersTests {
  private let fixture: Fixture
  private let second = deviceKeys(2)
  private let third = deviceKeys(3)
  private var entropy: any Entropy = SeededEntropy(seed: 5)

  init() throws { fixture = try Fixture() }

  private func members(_ more: [Record] = [], keys: DeviceKeys? = nil) -> Members {
    Members(of: fixture.roster(fixture.records + more), keys: keys ?? fixture.creator)
  }

  private func checked(_ records: [Record]) -> [CheckedRecord] {
    records.map { CheckedRecord($0, account: fixture.account) }
  }

  private func certificate(of keys: DeviceKeys, by signer: DeviceKeys? = nil) throws -> Record {
    try fixture.certificate(of: keys, by: signer ?? fixture.creator)
  }

  // MARK: Learning

  @Test func `news are told once, in the order in which they are sent`() throws {
    var members = members()
    let certificate = try certificate(of: second)
    let revocation = try fixture.revocation(of: second.id, by: fixture.creator)
    let learnt = members.learn(checked([revocation, certificate]), isOwn: false)
    let news = try #require(learnt)
    #expect(news.records == [certificate, revocation])
    #expect(news.revoked == [second.id])
    #expect(Set(news.mutations.compactMap(\.putRecordID)) == [certificate.id, revocation.id])
    let again = members.learn(checked([revocation]), isOwn: false)
    #expect(again?.records == nil)
    let more = members.learn(checked([try self.certificate(of: third)]), isOwn: false)
    #expect(more?.revoked == [])
  }

  @Test func `records on a carrier count if their bringer is a member, or they prove it`() throws {
    let certificate = try certificate(of: second)
    let members = members([try self.certificate(of: third)])
    let revocation = try fixture.revocation(of: third.id, by: fixture.creator)
    let cases: [(String, [Record], by: DeviceID, counting: [Record])] = [
      ("a member's", [certificate], third.id, [certificate]),
      ("a proof", [certificate, revocation], second.id, [certificate, revocation]),
      ("no proof", [certificate, revocation], deviceKeys(4).id, [revocation]),
      ("a member that they revoke", [certificate, revocation], third.id, [revocation]),
    ]
    for (name, records, author, counting) in cases {
      #expect(
        members.counting(checked(records), of: author).map(\.record) == counting, "\(name)")
    }
  }

  @Test func `a revoked device knows that it is, unless a test has it not know`() throws {
    let certificate = try certificate(of: second)
    let revocation = try fixture.revocation(of: second.id, by: fixture.creator)
    var members = members([certificate], keys: second)
    var deaf = members
    deaf.ignoresItsRevocation = true
    _ = members.learn(checked([revocation]), isOwn: false)
    _ = deaf.learn(checked([revocation]), isOwn: false)
    #expect(members.isRevoked && !deaf.isRevoked)
    #expect(members.handshakeEpochs(at: LinkFixture.instant()) { _ in nil }.isEmpty)
  }

  @Test func `a person's change of members is refused with its reason`() throws {
    var members = members([try certificate(of: second)])
    let name = try members.rename(second.id, to: "laptop", at: 5)
    #expect(name?.records.count == 1 && members.roster.name(of: second.id) == "laptop")
    #expect(throws: MembershipError.unknownDevice) {
      var members = members
      _ = try members.rename(third.id, to: "phone", at: 5)
    }
    #expect(throws: MembershipError.ownDevice) {
      var members = members
      _ = try members.revoke(fixture.creator.id, keeping: [], at: 5)
    }
    let revoked = try members.revoke(second.id, keeping: [], at: 5)
    #expect(revoked?.revoked == [second.id])
  }

  // MARK: Peers

  @Test func `a peer is sent what it may have`() throws {
    let certificate = try certificate(of: second)
    let revocation = try fixture.revocation(of: third.id, by: fixture.creator)
    var members = members([certificate, try self.certificate(of: third), revocation])
    let path = members.roster.chain(of: fixture.creator.id)
    guard case .all(let all) = members.records(for: LinkFixture.peer(second), isMember: true),
      case .proof(let proof) = members.records(
        for: LinkFixture.peer(deviceKeys(7)), isMember: false),
      case .proof(let older) = members.records(
        for: LinkFixture.peer(deviceKeys(7), isMembershipOnly: true), isMember: false),
      case .revocation(let gone) = members.records(for: LinkFixture.peer(third), isMember: false)
    else { throw BrokenFixture() }
    #expect(Array(all.prefix(path.count)) == path)
    #expect(Set(all.map(\.id)) == Set(members.roster.records.map(\.id)))
    #expect(proof == path && older.isEmpty)
    #expect(gone == [revocation])
  }

  @Test func `a stranger proves itself, or brings a part of the proof`() throws {
    let path = [try certificate(of: second), try certificate(of: third, by: second)]
    let peer = LinkFixture.peer(third)
    let members = members()
    guard
      case .unproved(let proof, let learn, let sends) = members.judge(
        checked([path[1]]), of: peer, after: [])
    else { throw BrokenFixture() }
    #expect(proof.map(\.record) == [path[1]] && learn.isEmpty && sends.isEmpty)
    guard case .learn(let all) = members.judge(checked([path[0]]), of: peer, after: proof) else {
      throw BrokenFixture()
    }
    #expect(Set(all.map(\.record.id)) == Set(path.map(\.id)))
  }

  @Test func `of a revoked stranger revocations count, and of one below it the proof, too`() throws
  {
    let enrolled = try certificate(of: second)
    let below = try certificate(of: third, by: second)
    let revocation = try fixture.revocation(of: second.id, by: fixture.creator)
    let members = members([enrolled, revocation])
    guard
      case .learn(let nothing) = members.judge(
        checked([below]), of: LinkFixture.peer(second), after: []),
      case .unproved(_, let learn, let sends) = members.judge(
        checked([below]), of: LinkFixture.peer(third), after: [])
    else { throw BrokenFixture() }
    #expect(nothing.isEmpty)
    #expect(learn.map(\.record) == [below])
    #expect(sends == [revocation])
  }

  @Test func `older epochs are open while a member may not have moved on`() throws {
    var entropy = entropy
    var members = members([try certificate(of: second), try certificate(of: third)])
    // The device that is revoked has the epoch, so it needs another.
    let boxes = members.keyring.lockboxesForMembersWithoutEpochs(
      in: members.roster, keys: fixture.creator, entropy: &entropy)
    #expect(boxes.count == 2)
    _ = members.learn(own: boxes)
    let old = try #require(members.keyring.current)
    _ = try members.revoke(third.id, keeping: [], at: LinkFixture.time)
    _ = members.makeEpochIfNone(&entropy)
    let new = try #require(members.keyring.current)
    #expect(new.id != old.id)
    let (now, later) = (
      LinkFixture.instant(), LinkFixture.instant(Limits.revocationNewsMilliseconds)
    )
    func epochs(at time: Instant, met epoch: EpochID) -> [EpochID] {
      members.handshakeEpochs(at: time) { _ in epoch }.map(\.id)
    }
    #expect(epochs(at: later, met: old.id) == [new.id, old.id])
    #expect(epochs(at: later, met: new.id) == [new.id])
    #expect(epochs(at: now, met: new.id) == [new.id, old.id], "the revoked one was not told")
    _ = members.revocation(for: third.id)
    #expect(epochs(at: now, met: new.id) == [new.id])
  }

  // MARK: Duties

  @Test func `a member's duties are done after a wait, once`() throws {
    var entropy = entropy
    var members = members([
      try certificate(of: second), try certificate(of: third, by: second),
      try fixture.revocation(of: second.id, by: fixture.creator),
    ])
    #expect(members.roster.orphans == [third.id])
    members.schedule(at: 100, holdsWithheld: false, &entropy)
    let due = try #require(members.duties.dueAt)
    let wait = Limits.dutyWaitMilliseconds
    #expect((100 + wait..<100 + 5 * wait).contains(due))
    members.schedule(at: 200, holdsWithheld: true, &entropy)
    #expect(members.duties.dueAt == due)
    guard case .notYet = members.fulfil(at: LinkFixture.instant(due - 1), &entropy),
      case .done(let news) = members.fulfil(at: LinkFixture.instant(due), &entropy)
    else { throw BrokenFixture() }
    #expect(news.first?.revoked == [third.id])
    #expect(members.roster.orphans.isEmpty && members.keyring.current != nil)
    members.schedule(at: due, holdsWithheld: false, &entropy)
    #expect(members.duties.dueAt == nil, "nothing is left to do")
    members.schedule(at: due, holdsWithheld: true, &entropy)
    #expect(members.duties.dueAt != nil)
  }
}

extension Mutation {
  fileprivate var putRecordID: Digest256? {
    if case .put(.record(let id), _) = self { id } else { nil }
  }
}
