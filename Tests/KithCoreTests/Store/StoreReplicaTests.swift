import KithCrypto
import Testing

@testable import KithCore

/// The behaviour of one store: no replica, no session, no world.
@Suite struct StoreReplicaTests {
  private let tight = Policy(totalBytes: 100, keys: 3, keyBytes: 8, valueBytes: 80)

  // MARK: Writing

  @Test(arguments: [
    ("", 1, true), ("much too long", 1, true), ("k", 81, true), ("k", 80, false),
  ])
  func `an operation that can never be shown is refused`(key: String, size: Int, isRefused: Bool)
    throws
  {
    var pair = try StorePair(policy: tight)
    if isRefused {
      #expect(throws: WriteError.self) { try pair.write([set(key, blob(size - 1))], on: 0) }
      #expect(pair.stores[0].drafts.isEmpty && pair.stores[0].state.shown.isEmpty)
    } else {
      try pair.write([set(key, blob(size - 4))], on: 0)
      #expect(pair.shown(Key(key), on: 0) != nil)
    }
  }

  @Test func `a write over the quota changes nothing, and says by how much`() throws {
    var pair = try StorePair(policy: tight)
    #expect(try pair.write([set("a", blob(60))], on: 0).map(\.reason) == [nil])
    do throws(WriteError) {
      let author = pair.keys[0].id
      _ = try pair.stores[0].write(
        [set("b", blob(60))], author: author, clock: &pair.clock)
      Issue.record("it was accepted")
    } catch {
      guard case .quotaExceeded(let numbers) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(numbers.askedBytes > numbers.limitBytes && numbers.askedKeys == 2)
    }
    #expect(pair.stores[0].drafts.count == 1)
    #expect(try pair.write([remove("nothing there")], on: 0).isEmpty)
  }

  // MARK: Adopting

  @Test(arguments: [
    ("new", 10, Refusal.Reason?.none), ("known", 10, .initialSync), ("new", 90, .quota),
    ("too long a key", 10, .quota),
  ])
  func `an adopted write becomes a draft, or is refused`(
    key: String, size: Int, reason: Refusal.Reason?
  ) throws {
    var pair = try StorePair(policy: tight)
    let known = try pair.publish([set("known", 1)], by: 0)
    _ = pair.take(known, on: 1)
    let author = pair.keys[1].id
    let write = LocalWrite(
      clock: HybridTime(milliseconds: 7), operations: [set(key, blob(size))])
    let outcome = pair.stores[1].adopt(
      [write], author: author, isAlone: false, clock: &pair.clock)
    #expect(pair.stores[1].refusals.refusals.map(\.reason) == [reason].compactMap(\.self))
    let drafts = pair.stores[1].drafts.byKey.values
    #expect(drafts.map(\.clock.isAdopted) == (reason == nil ? [true] : []))
    #expect(outcome.hasProgress == (reason != nil))
    #expect(outcome.views.map(\.superseded) == [reason == nil ? [] : [Key(key)]])
    #expect(
      outcome.mutations.contains(
        .put(.store(TestWorld.store, .adopted), HybridTime(milliseconds: 7).row)))
    // The same once more, after a crash: nothing.
    let again = pair.stores[1].adopt(
      [write], author: author, isAlone: false, clock: &pair.clock)
    #expect(again.mutations.isEmpty && again.views.isEmpty && !again.hasProgress)
  }

  // MARK: Applying

  @Test func `a batch is merged, counted, shown and passed on`() throws {
    var pair = try StorePair()
    let batch = try pair.publish([set("k", "v")], by: 0)
    let applied = pair.take(batch, on: 1)
    #expect(pair.shown("k", on: 1) == (try EncodedValue("v")))
    #expect(applied.outcome.views.map(\.reason) == [.externalChange])
    let relayed = try #require(applied.relayed)
    #expect(relayed.changeSets.map(\.reference) == batch.changeSets.map(\.reference))
    #expect(relayed.covers == [Cover(chain: pair.chain(0), from: 0, through: 1)])
    #expect(applied.isNews && !relayed.isEverything)
    #expect(applied.latest == batch.changeSets[0].header.clock)
    #expect(!applied.showsCopy && applied.outcome.reports.isEmpty)
    #expect(pair.stores[0].digest() == pair.stores[1].digest())
    let again = pair.take(batch, on: 1)
    #expect(again.outcome.mutations.isEmpty && again.relayed == nil && !again.isNews)
  }

  /// `batch`, opened ahead by a device with this roster.
  private func opened(_ batch: Batch, by index: Int, _ roster: Roster, _ pair: StorePair) -> Batch {
    var opener = EntryOpener(roster: roster, keyring: pair.keyrings[index])
    var batch = batch
    batch.changeSets = opener.open(batch.changeSets.map { .sound($0) }, concurrently: nil)
      .compactMap { if case .sound(let changeSet) = $0 { changeSet } else { nil } }
    return batch
  }

  @Test func `entries that were opened ahead count, and are passed on without their plaintexts`()
    throws
  {
    var pair = try StorePair()
    let batch = opened(try pair.publish([set("k", "v")], by: 0), by: 1, pair.roster, pair)
    #expect(batch.changeSets.map { $0.opened != nil } == [true])
    let applied = pair.take(batch, on: 1)
    #expect(pair.shown("k", on: 1) == (try EncodedValue("v")))
    #expect(applied.relayed?.changeSets.map { $0.opened == nil } == [true])
  }

  /// Certificates may give a device another key in an older roster.
  @Test func `entries that were opened ahead with another key of the author are opened again`()
    throws
  {
    var pair = try StorePair()
    let batch = try pair.publish([set("k", "v")], by: 1)
    let (author, other) = (pair.keys[1], deviceKeys(9))
    let certificate = try #require(
      Certificate(
        device: author.id, boxKey: other.boxPublicKey, transportKey: author.transportPublicKey,
        name: "second", issued: 2))
    var old = pair.fixture.roster(pair.fixture.records)
    _ = old.learn(all: [
      try Record(body: RecordBody.encode(certificate), signatures: [])
        .signed(by: author.signing, account: pair.fixture.account)
        .signed(by: pair.keys[0].signing, account: pair.fixture.account)
    ])
    let early = opened(batch, by: 0, old, pair)
    #expect(early.changeSets.map { $0.opened != nil } == [true])
    _ = pair.take(early, on: 0)
    #expect(pair.shown("k", on: 0) == (try EncodedValue("v")))
    #expect(pair.stores[0].quarantined == 0)
  }

  /// A batch of two change sets, the pieces of it that come, and what other peers get of the last.
  @Test(
    arguments: [
      ("whole", Piece(), "2 change sets, 1 covers"),
      ("a piece", Piece(isUnfinished: true, covers: false), "nothing"),
      ("the last piece", Piece(after: true), "pieces"),
      ("the last piece, without news", Piece(after: false, isKnown: true), "nothing"),
      ("the last piece, after news", Piece(after: true, isKnown: true), "pieces"),
      (
        "a piece of a repair", Piece(isUnfinished: true, isEverything: true, covers: false),
        "2 change sets, 0 covers"
      ),
      (
        "the last piece of a repair", Piece(after: true, isEverything: true),
        "2 change sets, 0 covers"
      ),
      ("whole, while chains are withheld", Piece(isWithholding: true), "2 change sets, 0 covers"),
      ("known", Piece(isKnown: true), "nothing"),
    ])
  func `a batch is relayed whole, as pieces, or not`(
    name: String, piece: Piece, relayed: String
  ) throws {
    var pair = try StorePair()
    var batch = try pair.publish([set("k", "v")], by: 0)
    let later = try pair.publish([set("l", "w")], by: 0)
    batch.changeSets += later.changeSets
    batch.covers = piece.covers ? [Cover(chain: pair.chain(0), from: 0, through: 2)] : []
    if piece.isKnown { _ = pair.take(batch, on: 1) }
    if piece.isWithholding {
      pair.stores[1].log.insert(unsigned(1, of: chain(9)))
      pair.stores[1].log.withhold([chain(9).device])
    }
    (batch.isUnfinished, batch.isEverything) = (piece.isUnfinished, piece.isEverything)
    let after = piece.after.map { StoreExchange.Unfinished(taint: Taint(), isNews: $0) }
    let applied = pair.take(batch, on: 1, .session(after: after))
    #expect(applied.relayedInWords == relayed, "\(name)")
    #expect(applied.isNews == (!piece.isKnown || piece.after == true), "\(name)")
  }

  struct Piece: Sendable {
    var isUnfinished = false
    /// Whether earlier pieces brought news; nil: there were none.
    var after: Bool?
    var isEverything = false
    var isKnown = false
    var isWithholding = false
    var covers = true
  }

  /// The batch ends at a peer that may not know of a revocation.
  @Test(arguments: [true, false])
  func `covers of a revoked device taint a session's batch, and no carrier's`(isSession: Bool)
    throws
  {
    var pair = try StorePair()
    let gone = deviceKeys(9)
    _ = pair.roster.learn(
      all: try [
        pair.fixture.certificate(of: gone, by: pair.fixture.creator),
        pair.fixture.revocation(of: gone.id, by: pair.fixture.creator),
      ])
    var batch = try pair.publish([set("k", "v")], by: 0)
    let chain = ChainID(device: gone.id, incarnation: Incarnation(rawValue: 1))
    batch.covers.append(Cover(chain: chain, from: 0, through: 1))
    let applied = pair.take(batch, on: 1, isSession ? .session(after: nil) : .other)
    #expect(applied.taint.isOfAllChains == isSession)
    #expect(pair.stores[1].log.vector == (isSession ? [:] : [pair.chain(0): 1]))
  }

  @Test func `a draft that loses to what comes is superseded, and one without room refused`() throws
  {
    var pair = try StorePair(policy: tight)
    try pair.write([set("k", "mine")], on: 1)
    try pair.write([set("large", blob(60))], on: 1)
    pair.advance()
    let batch = try pair.publish([set("k", "theirs"), set("other", blob(60))], by: 0)
    let applied = pair.take(batch, on: 1)
    #expect(pair.stores[1].drafts.isEmpty)
    #expect(pair.stores[1].refusals.refusals.map(\.reason) == [.quota])
    #expect(applied.outcome.hasProgress)
    let superseded = applied.outcome.views.map { ($0.reason, $0.superseded) }
    #expect(superseded.first { $0.0 == .externalChange }?.1 == ["k"])
    #expect(superseded.first { $0.0 == .quotaViolationChange }?.1 == ["large"])
  }

  /// The fault of a change set's author, tag or weight.
  private enum Wrong: CaseIterable { case author, epoch, store, revoked, weight }

  @Test(arguments: Wrong.allCases)
  private func `a change set that does not count changes nothing`(wrong: Wrong) throws {
    var pair = try StorePair(
      policy: wrong == .weight ? Policy(totalBytes: 1, keys: 1) : .standard)
    let entry = Entry(
      key: "k", stamp: Stamp(clock: pair.clock.tick(), device: pair.keys[0].id),
      content: .value(try EncodedValue(blob(30_000))),
      claim: Claim(clock: .zero, device: pair.keys[0].id, group: 0))
    let other = try #require(StoreIdentifier("com.example.Other"))
    let sealer = try pair.sealer(0, for: wrong == .store ? other : TestWorld.store)
    let changeSet = sealer.seal(
      [entry.plaintext()], sequence: 1, clock: pair.clock.tick(), noncePrefix: pair.entropy.draw())
    switch wrong {
    case .author: pair.roster = pair.fixture.roster(Array(pair.fixture.records.prefix(0)))
    case .epoch: pair.keyrings[1] = Keyring()
    case .revoked:
      let revocation = try pair.fixture.revocation(of: pair.keys[0].id, by: pair.keys[1])
      _ = pair.roster.learn(all: [revocation])
    case .store, .weight: break
    }
    let chain = changeSet.header.chain
    let applied = pair.take(
      Batch(
        store: TestWorld.store, changeSets: [changeSet],
        covers: [Cover(chain: chain, from: 0, through: 1)]), on: 1, .other)
    #expect(applied.outcome.mutations.isEmpty && applied.relayed == nil && !applied.isNews)
    #expect(pair.stores[1].state.shown.isEmpty)
    #expect(applied.taint.isUnjudged == (wrong == .author || wrong == .epoch))
    #expect(applied.taint.contains(chain) == (wrong != .revoked))
    let (author, peer) = (pair.keys[0].id, pair.keys[0].id)
    switch wrong {
    case .store:
      #expect(
        applied.outcome.reports
          == [.misdirected(store: TestWorld.store, peer: peer, author: author, count: 1)])
    case .weight:
      #expect(
        applied.outcome.reports == [.authorOverLimit(store: TestWorld.store, author: author)])
    default: #expect(applied.outcome.reports.isEmpty)
    }
  }

  @Test func `a change set of our own chain that we did not make shows a copy`() throws {
    var pair = try StorePair()
    let original = pair.stores[1]
    let published = try pair.publish([set("k", 1)], by: 1)
    pair.stores[1] = original
    #expect(pair.take(published, on: 1).showsCopy)
    #expect(!pair.take(published, on: 0).showsCopy)
  }

  // MARK: Damage

  @Test func `damaged entries are asked for again, and regained`() throws {
    var pair = try StorePair()
    let batch = try pair.publish([set("k", 1)], by: 0)
    _ = pair.take(batch, on: 1)
    let lost = StoreLoss(rows: 1)
    #expect(pair.stores[1].drop(nil).isEmpty)
    let mutations = pair.stores[1].drop(lost)
    #expect(mutations.contains(.put(.store(TestWorld.store, .loss), lost.row)))
    #expect(pair.stores[1].isLacking && pair.stores[1].log.vector.isEmpty)
    let applied = pair.take(batch, on: 1)
    #expect(applied.outcome.reports == [.regained(store: TestWorld.store)])
    #expect(!pair.stores[1].isLacking && pair.stores[1].missing == nil)
  }

  // MARK: Publishing

  @Test func `a revoked device's entries are published again, and nothing shown changes`() throws {
    var pair = try StorePair()
    _ = pair.take(try pair.publish([set("k", 1)], by: 0), on: 1)
    let (digest, shown) = (pair.stores[1].digest(), pair.stores[1].state.shown)
    let revoked: Set = [pair.keys[0].id]
    #expect(pair.stores[1].withhold(revoked).isEmpty)
    let waiting = pair.stores[1].carryOver(by: nil, clock: &pair.clock, entropy: &pair.entropy)
    #expect(waiting == nil)
    let sealer = try pair.sealer(1)
    let mutations = pair.stores[1].carryOver(
      by: sealer, clock: &pair.clock, entropy: &pair.entropy)
    #expect(mutations?.isEmpty == false)
    #expect(!pair.stores[1].log.holdsWithheld)
    #expect(pair.stores[1].log.vector == [pair.chain(1): 1])
    #expect(pair.stores[1].digest() == digest && pair.stores[1].state.shown == shown)
    let none = pair.stores[1].carryOver(by: nil, clock: &pair.clock, entropy: &pair.entropy)
    #expect(none == [])
  }

  @Test func `a repair stores the box of an entry that it gives another home`() throws {
    var pair = try StorePair()
    _ = pair.take(try pair.publish([set("k", 1)], by: 1), on: 0)
    let revoked = pair.keys[1].id
    let record = try pair.fixture.revocation(of: revoked, by: pair.fixture.creator)
    _ = pair.roster.learn(all: [record])
    _ = pair.stores[0].withhold([revoked])
    // Another device, which still holds the revoked device's own change set.
    pair.stores[1] = pair.stores[0]
    let sealer = try pair.sealer(0)
    let mutations = pair.stores[0].carryOver(
      by: sealer, clock: &pair.clock, entropy: &pair.entropy)
    let full = try #require(ChangeSet(stored: mutations ?? []))
    var bare = full
    bare.stored.entries = [:]
    _ = pair.take(Batch(store: TestWorld.store, changeSets: [bare]), on: 1)
    let repair = Batch(store: TestWorld.store, isEverything: true, changeSets: [full])
    let applied = pair.take(repair, on: 1)
    let location = EntryLocation(changeSet: full.reference, index: 0)
    #expect(pair.stores[1].state.slots["k"]?.newest.location == location)
    #expect(pair.stores[1].log.changeSets[full.reference]?.holds(0) == true)
    let box = try #require(full.stored.entries[0])
    #expect(
      applied.outcome.mutations.contains(
        .put(.store(TestWorld.store, .entry(full.reference, 0)), box)))
    #expect(applied.outcome.views.isEmpty)
  }
}

extension ChangeSet {
  /// The change set that mutations put into storage.
  fileprivate init?(stored mutations: [Mutation]) {
    var kept: StoredChangeSet?
    for mutation in mutations {
      switch mutation {
      case .put(.store(_, .changeSet), let row):
        kept = StoredChangeSet(row: row)
      case .put(.store(_, .entry(_, let index)), let box): kept?.entries[index] = box
      default: break
      }
    }
    guard let kept, let header = try? ChangeSetHeader(decoding: kept.header) else { return nil }
    self.init(header: header, stored: kept)
  }
}

/// The input of a state's digest (`Docs/Protocol.md`, "State digest").
@Suite struct StateDigestTests {
  private let device = DeviceID { $0.initializeMemory(as: UInt8.self, repeating: 1) }

  /// The digest of a store that holds these writes, `nil` for removals, each written without
  /// knowing any other.
  private func digest(_ writes: [(key: String, clock: UInt64, number: Int64?)]) throws -> Digest256
  {
    var store = StoreReplica(
      identifier: TestWorld.store, policy: .standard)
    for write in writes {
      let stamp = Stamp(clock: HybridTime(rawValue: write.clock), device: device)
      let entry = Entry(
        key: Key(write.key), stamp: stamp,
        content: try write.number.map { .value(try EncodedValue(.integer($0))) } ?? .removed,
        claim: Claim(clock: stamp.clock, device: device, group: 0))
      let digest = Blake2b.digest256(entry.plaintext())
      _ = store.merge(KeptEntry(entry: entry, digest: digest, location: nil))
    }
    return store.digest()
  }

  @Test func `removals that are the newest of their key do not count, for they are forgotten`()
    throws
  {
    let one = try digest([("a", 1, 7)])
    #expect(try digest([("a", 1, 7), ("b", 2, nil)]) == one)
    #expect(try digest([("b", 1, 3), ("a", 1, 7), ("b", 2, nil)]) == one)
    #expect(try digest([("b", 2, nil)]) == (try digest([])))
  }

  @Test func `every other kept entry counts, also a runner-up that is a removal`() throws {
    let one = try digest([("a", 3, 7)])
    #expect(try digest([("a", 3, 7), ("b", 1, 7)]) != one)
    #expect(try digest([("a", 3, 7), ("a", 2, 6)]) != one)
    #expect(try digest([("a", 3, 7), ("a", 2, nil)]) != one)
    #expect(
      try digest([("a", 2, nil), ("a", 3, 7)]) == (try digest([("a", 3, 7), ("a", 2, nil)])))
    #expect(try digest([("a", 3, 8)]) != one)
  }
}
