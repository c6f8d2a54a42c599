import KithCrypto
import Testing

@testable import KithCore

struct KeyringTests {
  var fixture: Fixture

  init() throws { fixture = try Fixture() }

  func keyring(_ roster: Roster, _ keys: DeviceKeys) -> Keyring {
    var keyring = Keyring()
    keyring.refresh(from: roster, keys: keys)
    return keyring
  }

  @Test mutating func recipientsAndRecoveryKeyOpenAnEpochAndNobodyElse() throws {
    let second = deviceKeys(2)
    var roster = fixture.roster(
      fixture.records + [try fixture.certificate(of: second, by: fixture.creator)])
    let mine = keyring(roster, fixture.creator)
    let epoch = try #require(mine.current)
    #expect(epoch.generation == 1)
    #expect(epoch.id == EpochID(Blake2b.digest256(epoch.box.publicKey.bytes)))
    #expect(keyring(roster, second).newestFirst.isEmpty)
    var recovered = Keyring()
    recovered.refresh(from: roster, recovery: fixture.recovery)
    #expect(recovered.current?.id == epoch.id)
    var stolen = Keyring()
    stolen.refresh(from: roster, recovery: recoveryKey(5))
    #expect(stolen.newestFirst.isEmpty)

    let boxes = mine.lockboxesForMembersWithoutEpochs(
      in: roster, keys: fixture.creator, entropy: &fixture.entropy)
    #expect(boxes.count == 1)
    _ = roster.learn(all: boxes)
    let theirs = keyring(roster, second)
    #expect(theirs.current?.id == epoch.id)
    let store = try #require(StoreIdentifier("com.example.Bookmarks"))
    #expect(theirs.current?.storeTag(of: store) == epoch.storeTag(of: store))
    let none = mine.lockboxesForMembersWithoutEpochs(
      in: roster, keys: fixture.creator, entropy: &fixture.entropy)
    #expect(none.isEmpty)
  }

  @Test mutating func aSecretOfAnotherEpochDoesNotOpen() throws {
    let second = deviceKeys(2)
    let other = EpochKeys(secret: EpochSecret(random: &fixture.entropy), generation: 1)
    let sealed = other.sealed(to: second.boxPublicKey, entropy: &fixture.entropy)
    let box = try #require(sealed)
    guard case .epoch(let epoch) = fixture.records[1].kind else {
      Issue.record("no epoch")
      return
    }
    let body = RecordBody.encode(
      LockboxRecord(epoch: epoch.id, secret: SealedSecret(device: second.id, box: box)))
    let record = try Record(body: body, signatures: [])
      .signed(by: fixture.creator.signing, account: fixture.account)
    let roster = fixture.roster(
      fixture.records + [record, try fixture.certificate(of: second, by: fixture.creator)])
    #expect(roster.records.count == 4)
    #expect(keyring(roster, second).newestFirst.isEmpty)
  }

  @Test mutating func aRevokedRecipientEndsAnEpoch() throws {
    let second = deviceKeys(2)
    var roster = fixture.roster(
      fixture.records + [try fixture.certificate(of: second, by: fixture.creator)])
    var mine = keyring(roster, fixture.creator)
    let boxes = mine.lockboxesForMembersWithoutEpochs(
      in: roster, keys: fixture.creator, entropy: &fixture.entropy)
    _ = roster.learn(
      all: boxes + [try fixture.revocation(of: second.id, by: fixture.creator)])
    mine.refresh(from: roster, keys: fixture.creator)
    #expect(mine.current == nil)
    #expect(mine.newestFirst.count == 1)
    let made = mine.nextEpoch(for: roster, keys: fixture.creator, entropy: &fixture.entropy)
    let next = try #require(made)
    _ = roster.learn(all: next)
    mine.refresh(from: roster, keys: fixture.creator)
    #expect(mine.current?.generation == 2)
    #expect(mine.newestFirst.map(\.generation) == [2, 1])
    // Nobody publishes under an epoch that the revoked device makes from now on.
    let theirs = keyring(roster, second)
    let void = theirs.nextEpoch(for: roster, keys: second, entropy: &fixture.entropy)
    let forged = try #require(void)
    _ = roster.learn(all: forged)
    let before = mine.current?.id
    mine.refresh(from: roster, keys: fixture.creator)
    #expect(mine.current?.id == before)
  }

  /// A member that lies makes an epoch of a generation after which there is hardly another.
  @Test mutating func nobodyUsesGenerationsUp() throws {
    let liar = deviceKeys(2)
    guard case .genesis(let genesis) = fixture.records[0].kind,
      case .epoch(let first) = fixture.records[1].kind
    else {
      Issue.record("no epoch")
      return
    }
    let base = fixture.records + [try fixture.certificate(of: liar, by: fixture.creator)]
    var made: [(record: Record, id: EpochID)] = []
    func make(_ generation: UInt32, _ parents: [EpochID]) throws -> EpochID {
      let epoch = EpochKeys(
        secret: EpochSecret(random: &fixture.entropy), generation: generation)
      let recipients = [fixture.creator, liar].compactMap {
        Certificate(of: $0, name: "device", issued: 2)
      }
      let record = Keyring.record(
        of: epoch, parents: parents.sorted(), recipients: recipients, genesis: genesis,
        account: fixture.account, signing: liar.signing, entropy: &fixture.entropy)
      made.append((try #require(record), epoch.id))
      return epoch.id
    }
    let unknown = EpochID(Blake2b.digest256([1]))
    // Above what its parents say, with parents that nobody knows, and on top of one of those.
    _ = try make(.max, [first.id])
    _ = try make(.max, [unknown])
    let high = try make(.max - 1, [unknown])
    _ = try make(.max, [high])
    var roster = fixture.roster(base + made.map(\.record))
    var mine = keyring(roster, fixture.creator)
    #expect(mine.current?.id == first.id)
    #expect(mine.newestFirst.count == 5, "what cannot be published under can still be read")
    #expect(mine.newestFirst.first?.id == first.id)
    // As high as goes without proof: it counts as long as its maker does, and leaves room.
    let unproven = try make(MembershipLimits.unprovenGeneration, [unknown])
    roster = fixture.roster(base + made.map(\.record))
    mine = keyring(roster, fixture.creator)
    #expect(mine.current?.id == unproven)
    let above = mine.nextEpoch(for: roster, keys: fixture.creator, entropy: &fixture.entropy)
    _ = roster.learn(all: try #require(above))
    #expect(
      keyring(roster, fixture.creator).current?.generation
        == MembershipLimits.unprovenGeneration + 1)
    // Once it is revoked, what it made is no parent any more.
    roster = fixture.roster(
      base + made.map(\.record) + [try fixture.revocation(of: liar.id, by: fixture.creator)])
    mine = keyring(roster, fixture.creator)
    #expect(mine.current?.id == nil || mine.current?.id == first.id)
    let next = mine.nextEpoch(for: roster, keys: fixture.creator, entropy: &fixture.entropy)
    _ = roster.learn(all: try #require(next))
    mine.refresh(from: roster, keys: fixture.creator)
    #expect(mine.current?.generation == 2)
    #expect(mine.newestFirst.prefix(2).map(\.generation) == [2, 1])
  }

  @Test mutating func aFullKeyringForgetsWhatTheRosterLetGoOf() throws {
    guard case .genesis(let genesis) = fixture.records[0].kind else { return }
    let recipients = [Certificate(of: fixture.creator, name: "device", issued: 2)].compactMap(
      \.self)
    let parent = try #require(keyring(fixture.roster(fixture.records), fixture.creator).current?.id)
    var mine = Keyring()
    var newest: [EpochID] = []
    // A roster keeps fewer epochs than a keyring: the keyring fills up if rosters change.
    for _ in 0...MembershipLimits.epochKeys / 100 {
      var records = fixture.records
      newest = []
      for _ in 0..<100 {
        let epoch = EpochKeys(secret: EpochSecret(random: &fixture.entropy), generation: 2)
        let record = Keyring.record(
          of: epoch, parents: [parent], recipients: recipients, genesis: genesis,
          account: fixture.account, signing: fixture.creator.signing, entropy: &fixture.entropy)
        records.append(try #require(record))
        newest.append(epoch.id)
      }
      // An epoch that there was no room for the first time is opened the next time, when room was
      // made.
      for _ in 0..<2 { mine.refresh(from: fixture.roster(records), keys: fixture.creator) }
    }
    #expect(newest.allSatisfy { mine[$0] != nil })
    #expect(mine.newestFirst.count <= MembershipLimits.epochKeys)
  }

  @Test mutating func authorAndReaderShareAKey() throws {
    let roster = fixture.roster(fixture.records)
    var mine = keyring(roster, fixture.creator)
    let epoch = try #require(mine.current)
    let certificate = try #require(roster.certificate(of: fixture.creator.id))
    let box = mine.sharedBox(epoch: epoch.id, author: certificate)
    let reading = try #require(box)
    let writing = try SharedBox(fixture.creator.box, with: epoch.box.publicKey)
    let nonce = fixture.entropy.draw(BoxNonce.self)
    #expect(try reading.open(writing.seal([1, 2, 3], nonce: nonce), nonce: nonce) == [1, 2, 3])
    let again = mine.sharedBox(epoch: epoch.id, author: certificate)
    #expect(again === reading)
  }
}
