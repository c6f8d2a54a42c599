import KithCrypto
import Testing

@testable import KithCore

/// The turn of a carrier, phase by phase and rule by rule, without a replica.
struct CarrierTests {
  let fixture: CarrierFixture
  let now: UInt64 = 10_000_000
  let mine: ChainID
  let theirs: ChainID

  init() throws {
    fixture = try CarrierFixture()
    (mine, theirs) = (fixture.chain(fixture.creator), fixture.chain(fixture.second))
  }

  /// The creator, which covers its chain through 3.
  func reader(after wait: UInt64 = 0) -> CarrierReader {
    fixture.reader([mine: 3], at: now + wait)
  }

  /// A carrier whose listing showed these objects.
  func listed(_ names: [ObjectName], _ known: [KnownObject]) -> Carrier {
    var carrier = Carrier()
    for (name, object) in zip(names, known) { carrier.objects[name] = object }
    carrier.begin()
    let isListed = carrier.listed(carrier.objects.known.mapValues(\.bytes), reader())
    #expect(isListed)
    return carrier
  }

  func names(_ count: Int) -> [ObjectName] {
    var fixture = fixture
    return (0..<count).map { _ in fixture.name() }.sorted()
  }

  func put(_ carrier: inout Carrier) -> OutboundObject? {
    var (timeKeeper, entropy) = (reader().timeKeeper, SeededEntropy(seed: 9))
    let next = carrier.nextPut(fixture.author(reader()), clock: &timeKeeper, entropy: &entropy)
    if case .put(let object) = next { return object } else { return nil }
  }

  @Test func `an answer counts only in its phase`() {
    let (name, reader) = (names(1)[0], reader())
    var (plan, last) = (Carrier.Plan(), name)
    plan.needsRecords = true
    let answers: [(name: String, isTaken: (inout Carrier) -> Bool)] = [
      ("gets", { !$0.nextGets(reader).isEmpty }),
      ("got", { $0.awaits(name) && $0.got(name, reader, nil) }),
      ("takes", { if case .take = $0.nextOpened(reader) { true } else { false } }),
      ("puts", { put(&$0) != nil }), ("stored", { $0.stored(last, bytes: 1) }),
      ("deleted", { $0.deleted() }),
    ]
    let steps: [((inout Carrier) -> Void, taken: [String])] = [
      ({ $0.attach(shortestMilliseconds: 5_000, at: 0) }, []), ({ $0.begin() }, []),
      ({ _ = $0.listed([name: 4_096], reader) }, ["gets"]), ({ _ = $0.nextGets(reader) }, ["got"]),
      ({ _ = $0.got(name, reader, .parcel(fixture.parcel(through: [:]), [])) }, ["takes"]),
      ({ $0.put(plan, [], fixture.author(reader)) }, ["puts"]),
      ({ last = put(&$0)?.name ?? last }, ["stored"]),
      ({ $0.objects[name] = fixture.object(.unreadable(since: 0)) }, ["stored"]),
      ({ _ = $0.nextDeletions(reader) }, ["deleted"]),
      ({ $0.end(reader, hasDrafts: false, since: nil) }, []),
      ({ $0.begin() }, []), ({ _ = $0.listed([name: 4_096], reader) }, ["gets"]),
      ({ $0.fail(retryAfter: nil, at: now) }, []),
    ]
    var carrier = Carrier()
    for (index, step) in steps.enumerated() {
      step.0(&carrier)
      let taken = answers.filter { answer in
        var copy = carrier
        return answer.isTaken(&copy)
      }
      #expect(taken.map(\.name) == step.taken, "after step \(index)")
      #expect((carrier.dueAt != nil) == [0, 9, 12].contains(index), "after step \(index)")
    }
  }

  @Test func `an object is got once in a turn, if it is new or can be taken in now`() {
    let (names, reader) = (names(2), reader())
    let (same, changed) = (reader.circumstances, Blake2b.digest256([7]))
    let (ready, unknown) = (
      fixture.parcel(through: [:]), fixture.parcel(by: deviceKeys(4), through: [:])
    )
    let waits = fixture.parcel(above: [theirs: 1], through: [:])
    let void = fixture.parcel(by: fixture.revoked, above: [theirs: 1], through: [:])
    var (first, last) = (ready, ready)
    (first.part.isLast, last.part.index) = (false, 1)
    let cases: [(KnownObject.State, heldBack: Digest256?, beside: Parcel?, isWanted: Bool)] = [
      (.unread, nil, nil, true), (.unreadable(since: now), nil, nil, true),
      (.waiting(ready), nil, nil, true), (.waiting(void), nil, nil, true),
      (.waiting(waits), nil, nil, false), (.waiting(unknown), nil, nil, false),
      (.waiting(ready), same, nil, false), (.waiting(ready), changed, nil, true),
      (.counted(ready), nil, nil, false), (.counted(ready), same, nil, false),
      (.counted(ready), changed, nil, true),
      (.handover(ready, to: fixture.epoch.id), nil, nil, false),
      (.waiting(last), nil, nil, false), (.waiting(last), nil, first, true),
    ]
    for (index, (state, heldBack, beside, isWanted)) in cases.enumerated() {
      var object = fixture.object(state)
      object.heldBack = heldBack
      var carrier = listed(names, [object] + (beside.map { [fixture.known($0)] } ?? []))
      let gets = (0..<2).map { _ in carrier.nextGets(reader) }
      #expect(gets == [isWanted ? [names[0]] : [], []], "case \(index)")
    }
  }

  @Test(
    arguments: [
      (.unread, 1_025, 4_096, 1_024), (.unread, 5, 16 << 20, 4), (.unread, 1, 16 << 20 + 1, 0),
      (.unreadable(since: 0), 17, 4_096, 16),
    ] as [(KnownObject.State, Int, Int, Int)])
  func `a turn gets so many objects, bytes, and doubtful objects`(
    state: KnownObject.State, count: Int, bytes: Int, gets: Int
  ) {
    let names = names(count)
    var carrier = listed(names, names.map { _ in fixture.object(state, bytes: bytes) })
    let asked = carrier.nextGets(reader())
    #expect(asked == Array(names.prefix(gets)))
  }

  @Test func `a parcel is ready, waits, cannot be judged, or is void`() {
    let (gone, refused) = (fixture.chain(fixture.revoked), fixture.chain(deviceKeys(5)))
    let (revoked, stranger, time) = (fixture.revoked, deviceKeys(4), LinkFixture.time)
    func parcel(
      by keys: DeviceKeys? = nil, above: [ChainID: UInt64] = [:], ahead: UInt64 = 0,
      hasOtherLimits: Bool = false, beside: [ChainID: UInt64]? = nil
    ) -> Parcel {
      let clock = HybridTime(milliseconds: time + ahead).rawValue
      var parcel = fixture.parcel(by: keys, above: above, through: [:], clock: clock)
      if hasOtherLimits { parcel.stores[0].have.policy.keys -= 1 }
      guard let beside else { return parcel }
      let have = StoreHave(store: TestWorld.store, vector: [:], digest: nil, policy: .standard)
      parcel.stores.append(Parcel.Store(have: have, above: beside))
      return parcel
    }
    let cases: [(String, Parcel, CarrierReader.Verdict)] = [
      ("above nothing", parcel(), .ready),
      ("above what is covered", parcel(above: [mine: 3]), .ready),
      ("above more of a chain", parcel(above: [mine: 4]), .waits),
      ("above an unknown chain", parcel(above: [theirs: 1]), .waits),
      ("above a revoked device's", parcel(above: [gone: 9]), .ready),
      ("above a refused author's", parcel(above: [refused: 9]), .ready),
      ("other limits", parcel(above: [theirs: 1], hasOtherLimits: true), .ready),
      ("only one has other limits", parcel(hasOtherLimits: true, beside: [mine: 1]), .waits),
      ("an unknown store", parcel(beside: [:]), .ready),
      ("above data of an unknown store", parcel(beside: [mine: 1]), .waits),
      ("two minutes ahead", parcel(ahead: 120_000), .ready),
      ("more than two minutes ahead", parcel(ahead: 120_001), .waits),
      ("a stranger's", parcel(by: stranger), .cannotJudge),
      ("a stranger's, ahead", parcel(by: stranger, ahead: 120_001), .cannotJudge),
      ("a revoked device's", parcel(by: revoked), .void),
      ("a revoked device's, ahead", parcel(by: revoked, above: [mine: 4], ahead: 120_001), .void),
    ]
    let reader = fixture.reader([mine: 3], at: time, refused: [refused.device])
    for (name, parcel, verdict) in cases { #expect(reader.judge(parcel) == verdict, "\(name)") }
  }
  @Test func `an object that was got is taken in by clock, noted, or put off`() {
    let (names, reader, epoch) = (names(9), reader(), fixture.epoch.id)
    func parcel(by keys: DeviceKeys? = nil, isAbove: Bool = true, clock: UInt64 = 1) -> Parcel {
      fixture.parcel(
        by: keys, above: isAbove ? [theirs: 9] : [:], through: [theirs: 12], clock: clock)
    }
    let parcels = [
      parcel(isAbove: false, clock: 9), parcel(isAbove: false, clock: 8),
      parcel(by: fixture.revoked), parcel(), parcel(by: deviceKeys(4)),
    ]
    let known = Array(repeating: fixture.object(), count: 8)
    var carrier = listed(names, known + [fixture.object(.unreadable(since: 5))])
    _ = carrier.nextGets(reader)
    let contents: [OpenedObject.Content?] =
      parcels.map { .parcel($0, []) }
      + [.handover(parcels[0], [], to: epoch), nil, .unreadable, .unreadable]
    for (name, content) in zip(names, contents) { _ = carrier.got(name, reader, content) }
    var taken: [ObjectName] = []
    while case .take(let name, _, _) = carrier.nextOpened(reader) { taken.append(name) }
    #expect(taken == [names[1], names[0]])
    carrier.putOff(reader)
    // No header is inside, so a sequence counts up to what the parcel is above.
    let bounded = parcels.map { $0.bounded(by: [], after: []) }
    #expect(bounded[2].stores[0].have.vector == [theirs: 9])
    let states = names.map { carrier.objects[$0]?.state }
    #expect(
      states == [
        .unread, .unread, .counted(bounded[2]), .waiting(bounded[3]), .waiting(bounded[4]),
        .handover(parcels[0], to: epoch), .unread, .unreadable(since: now), .unreadable(since: 5),
      ])
    #expect(names.filter { carrier.objects[$0]?.heldBack == reader.circumstances } == [names[4]])
    #expect(names.filter { carrier.objects[$0]?.missingSince == now } == [names[6]])
  }

  @Test func `a share is what the carrier lacks`() {
    let names = names(2)
    let (digest, another) = (CarrierFixture.digest, Blake2b.digest256([2]))
    func told(_ through: UInt64, _ digest: Digest256? = nil, isLast: Bool = true) -> Parcel {
      var parcel = fixture.parcel(through: [mine: through])
      (parcel.stores[0].have.digest, parcel.part.isLast) = (digest, isLast)
      return parcel
    }
    let void = fixture.parcel(by: fixture.revoked, through: [mine: 3])
    var fold = told(1)
    fold.replaces = [names[0]]
    let cases: [(String, [Parcel], isCounted: Bool, above: UInt64?, isAll: Bool, isUntold: Bool)] =
      [
        ("nothing is there", [], true, 0, false, false),
        ("less is there", [told(2, digest)], true, 2, false, false),
        ("all is there", [told(3, digest)], true, nil, false, false),
        ("more is there", [told(4)], true, nil, false, true),
        ("no parcel tells the state", [told(3)], true, nil, false, true),
        ("a parcel tells another state", [told(3, another)], true, 0, true, false),
        ("the parcel waits", [told(3, digest)], false, 0, false, false),
        ("the last part is missing", [told(3, digest, isLast: false)], true, 0, false, false),
        ("a revoked device put it", [void], true, 0, false, false),
        ("a fold that brings less names it", [told(3, digest), fold], true, 1, false, false),
      ]
    for (name, parcels, isCounted, above, isAll, isUntold) in cases {
      var carrier = listed(names, parcels.map { fixture.known($0, isCounted: isCounted) })
      let plans = (0..<2).map { _ in carrier.plan(fixture.author(reader()), random: 0) }
      let shares = plans[0].shares
      #expect(shares.first.map { $0.above[mine] ?? 0 } == above && shares.count <= 1, "\(name)")
      #expect(plans.map { $0.shares.contains(where: \.isEverything) } == [isAll, false], "\(name)")
      #expect(plans[0].untold.map(\.above) == (isUntold ? [[mine: 3]] : []), "\(name)")
    }
  }

  /// A reader that lacks one side of a fork may read the other before its vector is the parcel's.
  @Test func `a parcel is a repair or odd by its vector and digest`() {
    let (other, void) = (fixture.chain(fixture.second), fixture.chain(fixture.revoked))
    let (digest, another) = (CarrierFixture.digest, Blake2b.digest256([2]))
    let reader = fixture.reader([mine: 3])
    let cases: [(String, [ChainID: UInt64], Digest256?, isRepair: Bool, isOdd: Bool)] = [
      ("the same vector and digest", [mine: 3], digest, false, false),
      ("another digest", [mine: 3], another, true, true),
      ("no digest", [mine: 3], nil, false, false),
      ("a later vector", [mine: 4], another, true, false),
      ("more chains", [mine: 3, other: 1], another, true, false),
      ("an earlier vector", [mine: 2], another, false, false),
      ("earlier in one chain", [mine: 2, other: 1], another, false, false),
      ("a revoked device's chain", [mine: 3, void: 1], another, false, false),
    ]
    for (name, through, digest, isRepair, isOdd) in cases {
      var parcel = fixture.parcel(through: through)
      parcel.stores[0].have.digest = digest
      #expect(reader.isRepair(parcel.stores[0]) == isRepair, "\(name)")
      #expect(reader.isOdd(parcel.stores[0]) == isOdd, "\(name)")
    }
  }

  /// The reader covers its own chain through 3; the parcel has change sets 3 and 4 of it.
  @Test func `of a store in a parcel, what is covered is left out, but not of a repair`() throws {
    let another = Blake2b.digest256([2])
    let other = Policy(totalBytes: 1, keys: 1)
    let cases:
      [(String, digest: Digest256?, isEverything: Bool, isLast: Bool, Policy, opens: String)] = [
        ("an answer", nil, false, true, .standard, "[4], covers 1"),
        ("an earlier part", nil, false, false, .standard, "[4], covers 0"),
        ("everything", CarrierFixture.digest, true, true, .standard, "[4], covers 1"),
        ("a repair", another, true, true, .standard, "everything [3, 4], covers 1"),
        ("not everything", another, false, true, .standard, "[4], covers 1"),
        ("other limits", nil, false, true, other, "other limits"),
      ]
    var sealing = fixture
    let batch = Batch(
      store: fixture.store, changeSets: try [3, 4].map { try sealing.changeSet($0) })
    let messages = batch.messages().compactMap {
      InboundMessage(decoding: $0, account: fixture.account)
    }
    for (name, digest, isEverything, isLast, policy, opens) in cases {
      var parcel = fixture.parcel(above: [mine: 3], through: [mine: 4])
      parcel.stores[0].have.digest = digest
      parcel.stores[0].have.policy = policy
      parcel.stores[0].isEverything = isEverything
      parcel.part.isLast = isLast
      let outcome = reader().open(parcel.stores[0], of: parcel, messages, keeping: room)
      #expect(words(outcome) == opens, "\(name)")
    }
    let parcel = fixture.parcel(above: [mine: 3], through: [mine: 4])
    let empty = reader().open(parcel.stores[0], of: parcel, [], keeping: room)
    #expect(words(empty) == "[], covers 1")
  }

  private var room: BatchRoom {
    BatchRoom(own: mine.device, roster: fixture.roster, authorBytes: .max, elsewhereBytes: 0)
  }

  @Test func `a store in a parcel with more bytes than a batch may have cannot be judged`() throws {
    let bytes = 5 << 20
    var sealing = fixture
    let batch = Batch(
      store: fixture.store,
      changeSets: try [3, 4].map { try sealing.changeSet($0, bytes: bytes) })
    let first = try #require(batch.messages().first)
    let part = try #require(InboundMessage(decoding: first, account: fixture.account))
    let parcel = fixture.parcel(above: [mine: 2], through: [mine: 4])
    func open(_ parts: Int) -> String {
      let parts = Array(repeating: part, count: parts)
      return words(reader().open(parcel.stores[0], of: parcel, parts, keeping: room))
    }
    #expect(open(Limits.batchBytes / part.size) != "disorder")
    #expect(open(Limits.batchBytes / part.size + 1) == "disorder")
  }

  private func words(_ outcome: CarrierReader.OnStore) -> String {
    switch outcome {
    case .take(let batch, _):
      "\(batch.isEverything ? "everything " : "")\(batch.changeSets.map(\.header.sequence)), "
        + "covers \(batch.covers.count)"
    case .otherLimits: "other limits"
    case .disorder: "disorder"
    }
  }

  @Test func `a parcel that was taken in counts, is held back, or waits`() {
    let (name, reader) = (names(1)[0], reader())
    let parcel = fixture.parcel(above: [theirs: 9], through: [theirs: 12])
    // No header is inside, so a sequence counts up to what the parcel is above.
    let bounded = parcel.bounded(by: [], after: [])
    let cases: [(Carrier.Taken, KnownObject.State, isHeldBack: Bool)] = [
      (.whole, .counted(bounded), false), (.partly, .counted(bounded), true),
      (.unjudged, .waiting(bounded), true),
    ]
    for (taken, state, isHeldBack) in cases {
      var carrier = listed([name], [fixture.object()])
      carrier.took(name, parcel, [], taken, reader)
      #expect(carrier.objects[name]?.state == state && carrier.hasNews)
      #expect(carrier.objects[name]?.heldBack == (isHeldBack ? reader.circumstances : nil))
    }
  }

  @Test(arguments: [(2, false), (3, false), (4, true)] as [(UInt64, Bool)])
  func `a parcel of this device shows a copy if it says more of its chain than was received`(
    through: UInt64, saysMore: Bool
  ) {
    let parcel = fixture.parcel(through: [mine: through, theirs: 9])
    #expect(parcel.saysMore(of: mine) { _ in 3 } == saysMore)
  }

  @Test func `too many parcels are folded after a wait, unless another device did it`() {
    let names = names(4)
    let parcels = (1...3).map { fixture.known(fixture.parcel(through: [mine: 1], clock: $0)) }
    var fold = fixture.parcel(through: [mine: 1], clock: 4)
    fold.replaces = [names[0]]
    let more = fixture.known(fixture.parcel(through: [mine: 4], clock: 3))
    let most = Limits.foldFactor * Limits.smallestObjectBytes + Limits.foldBytes
    let cases: [(String, [KnownObject], isFolded: Bool)] = [
      ("two", Array(parcels[..<2]), false), ("three", parcels, true),
      ("parts of one", [parcels[0], parcels[0], parcels[0]], false),
      ("one brings what is lacking here", [parcels[0], parcels[1], more], false),
      ("another device's fold names one", parcels + [fixture.known(fold)], false),
      ("a large one", [fixture.object(parcels[0].state, bytes: most)], false),
      ("a larger one", [fixture.object(parcels[0].state, bytes: most + 1)], true),
    ]
    for (name, objects, isFolded) in cases {
      var carrier = listed(names, objects)
      for (wait, isDue) in [(0, false), (4_999, false), (5_000, true)] as [(UInt64, Bool)] {
        let author = fixture.author(reader(after: wait))
        let plan = carrier.plan(author, random: Limits.foldWaitMilliseconds + 5_000)
        let replaces = isFolded && isDue ? Array(names[..<objects.count]) : []
        #expect(plan.replaces == replaces, "\(name), after \(wait) ms")
        #expect(carrier.foldAt == (isFolded && !isDue ? now + 5_000 : nil), "\(name)")
      }
    }
  }

  /// A damaged handover is deleted even by a device that lacks the epoch it leads to: only then its
  /// author puts it again.
  @Test func `objects that opened are deleted only if the rest brings everything`() {
    let (names, hour) = (names(3), Limits.carrierHourMilliseconds)
    let (old, all) = (fixture.known(fixture.parcel(through: [mine: 3])), [fixture.epoch])
    // Object 0 does not open, and object 2 is a fold that names object 1.
    let cases: [(String, since: UInt64, through: UInt64, epochs: [EpochKeys], deleted: [Int])] = [
      ("all is there", now - hour, 3, all, [0, 1]),
      ("it did not open for less than an hour", now - hour + 1, 3, all, [1]),
      ("the fold brings less", now - hour, 2, all, [0]),
      ("a handover is lacking", now - hour, 3, [fixture.newest] + all, [0]),
      ("nothing can be deleted", now - hour + 1, 2, all, []),
    ]
    for (name, since, through, epochs, deleted) in cases {
      var fold = fixture.parcel(through: [mine: through])
      fold.replaces = [names[1]]
      var carrier = listed(
        names, [fixture.object(.unreadable(since: since)), old, fixture.known(fold)])
      let wanted = deleted.map { names[$0] }
      let deletions = carrier.nextDeletions(fixture.reader([mine: 3], at: now, epochs: epochs))
      #expect(deletions == wanted, "\(name)")
      let isDeleted = carrier.deleted()
      #expect(isDeleted == !wanted.isEmpty && carrier.hasNews == isDeleted, "\(name)")
      #expect(Set(carrier.objects.known.keys) == Set(names).subtracting(wanted), "\(name)")
    }
  }
}
