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
  func reader() -> CarrierReader { fixture.reader([mine: 3], at: now) }

  /// A carrier whose listing showed these objects.
  func listed(_ names: [ObjectName], _ known: [KnownObject]) -> Carrier {
    var carrier = Carrier()
    for (name, object) in zip(names, known) { carrier.objects[name] = object }
    carrier.begin()
    carrier.listed(carrier.objects.known.mapValues(\.bytes), reader())
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
      ("gets", { !$0.nextGets(reader).isEmpty }), ("got", { $0.got(name, reader, nil) }),
      ("takes", { if case .take = $0.nextOpened(reader) { true } else { false } }),
      ("puts", { put(&$0) != nil }), ("stored", { $0.stored(last, bytes: 1) }),
      ("deleted", { $0.deleted() }),
    ]
    let steps: [((inout Carrier) -> Void, taken: [String])] = [
      ({ $0.attach(shortestMilliseconds: 5_000, at: 0) }, []), ({ $0.begin() }, []),
      ({ $0.listed([name: 4_096], reader) }, ["gets"]), ({ _ = $0.nextGets(reader) }, ["got"]),
      ({ _ = $0.got(name, reader, .parcel(fixture.parcel(through: [:]), [])) }, ["takes"]),
      ({ $0.put(plan, [], fixture.author(reader)) }, ["puts"]),
      ({ last = put(&$0)?.name ?? last }, ["stored"]),
      ({ $0.objects[name] = fixture.object(.unreadable(since: 0)) }, ["stored"]),
      ({ _ = $0.nextDeletions(reader) }, ["deleted"]), ({ $0.end(reader) }, []),
      ({ $0.begin() }, []), ({ $0.listed([name: 4_096], reader) }, ["gets"]),
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
      ("a minute early", parcel(ahead: 60_000), .ready),
      ("more than a minute early", parcel(ahead: 60_001), .waits),
      ("a stranger's", parcel(by: stranger), .cannotJudge),
      ("a stranger's, early", parcel(by: stranger, ahead: 60_001), .cannotJudge),
      ("a revoked device's", parcel(by: revoked), .void),
      ("a revoked device's, early", parcel(by: revoked, above: [mine: 4], ahead: 60_001), .void),
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
    let bounded = parcels.map { carrier.bounded($0, []) }
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
