import KithCrypto
import Testing

@testable import KithCore

struct CarrierObjectsTests {
  var fixture: CarrierFixture
  let hour: UInt64 = 3_600_000

  init() throws { fixture = try CarrierFixture() }

  func reached(_ parcels: [Parcel]) -> [ChainID: UInt64] {
    CarrierObjects.reached(with: parcels, fixture.reader([:]))[fixture.store] ?? [:]
  }

  @Test func `parcels are reached from an empty vector`() {
    let (mine, theirs) = (fixture.chain(fixture.creator), fixture.chain(fixture.second))
    let first = fixture.parcel(through: [mine: 2], clock: 1)
    let second = fixture.parcel(above: [mine: 2], through: [mine: 4, theirs: 1], clock: 2)
    let unreachable = fixture.parcel(above: [theirs: 9], through: [theirs: 12], clock: 3)
    #expect(reached([first]) == [mine: 2])
    #expect(reached([second]) == [:])
    #expect(reached([second, unreachable, first]) == [mine: 4, theirs: 1])
  }

  @Test func `a parcel is reached in all its stores or in none`() {
    let (mine, theirs) = (fixture.chain(fixture.creator), fixture.chain(fixture.second))
    let other = StoreIdentifier("com.example.Notes")!
    func extended(
      _ parcel: Parcel, above: [ChainID: UInt64], through: [ChainID: UInt64],
      policy: Policy = .standard
    ) -> Parcel {
      var parcel = parcel
      let have = StoreHave(store: other, vector: through, digest: nil, policy: policy)
      parcel.stores.append(Parcel.Store(have: have, above: above))
      return parcel
    }
    // The first was above a parcel with `mine` 1 of the other store, which was lost; the second brings
    // that again, and is above what only the first has.
    let first = extended(
      fixture.parcel(through: [theirs: 1], clock: 1), above: [mine: 1],
      through: [mine: 1, theirs: 1])
    let second = extended(
      fixture.parcel(above: [theirs: 1], through: [theirs: 1, mine: 1], clock: 2), above: [:],
      through: [mine: 1])
    let reader = fixture.reader([:], empty: [other])
    #expect(CarrierObjects.reached(with: [first, second], reader).isEmpty)
    let third = extended(fixture.parcel(through: [:], clock: 3), above: [:], through: [mine: 1])
    let reached = CarrierObjects.reached(with: [first, second, third], reader)
    #expect(reached[fixture.store] == [theirs: 1, mine: 1])
    #expect(reached[other] == [mine: 1, theirs: 1])
    // As by a reader, a store with another policy is left out.
    var policy = Policy.standard
    policy.keys += 1
    let differing = extended(
      fixture.parcel(through: [theirs: 1], clock: 1), above: [mine: 1], through: [mine: 2],
      policy: policy)
    let partly = CarrierObjects.reached(with: [differing], reader)
    #expect(partly == [fixture.store: [theirs: 1]])
  }

  /// Clocks are often equal: that of a parcel is the latest inside.
  @Test mutating func `parcels come in one order, whatever the dictionary's`() {
    var objects = CarrierObjects()
    for group in 0..<20 as Range<UInt64> {
      var parcel = fixture.parcel(through: [fixture.chain(fixture.creator): 1])
      parcel.part.group = group
      objects[fixture.name()] = fixture.known(parcel)
    }
    let counting = objects.counting(for: fixture.reader([:]))
    #expect(counting.map(\.part.group) == Array(0..<20))
  }

  @Test mutating func `an object counts until listings lacked it for an hour`() {
    let chain = fixture.chain(fixture.creator)
    var objects = CarrierObjects()
    let name = fixture.name()
    objects[name] = fixture.known(fixture.parcel(through: [chain: 1]))
    let start: UInt64 = 10_000_000
    objects.compare(with: [name: 4_096], fixture.reader([:], at: start))
    for (after, isThere) in [(UInt64(1), true), (hour, true), (hour + 1, false)] {
      objects.compare(with: [:], fixture.reader([:], at: start + after))
      #expect((objects[name] != nil) == isThere)
    }
  }

  @Test mutating func `after the clock was set back, an hour is an hour`() {
    var objects = CarrierObjects()
    let name = fixture.name()
    objects[name] = fixture.known(fixture.parcel(through: [:]))
    objects.compare(with: [:], fixture.reader([:], at: 90_000_000))
    objects.compare(with: [:], fixture.reader([:], at: 10_000_000))
    #expect(objects[name]?.missingSince == 10_000_000)
    objects.compare(with: [:], fixture.reader([:], at: 10_000_000 + hour))
    #expect(objects[name] == nil)
  }

  @Test mutating func `a fold's parcels are deleted an hour later, if they were read`() {
    let chain = fixture.chain(fixture.creator)
    var objects = CarrierObjects()
    let (read, unread, waiting, fold) = (
      fixture.name(), fixture.name(), fixture.name(), fixture.name()
    )
    objects[read] = fixture.known(fixture.parcel(through: [chain: 1]))
    objects[unread] = fixture.object()
    objects[waiting] = fixture.known(fixture.parcel(through: [chain: 1]), isCounted: false)
    var parcel = fixture.parcel(through: [chain: 2])
    parcel.replaces = [read, unread, waiting].sorted()
    objects[fold] = fixture.known(parcel, firstSeen: 10_000_000)
    let early = fixture.reader([chain: 2], at: 10_000_000 + hour - 1)
    #expect(objects.deletable(by: early).isEmpty)
    let due = fixture.reader([chain: 2], at: 10_000_000 + hour)
    #expect(objects.deletable(by: due) == [read])
    // A device that does not cover the fold leaves everything.
    let behind = fixture.reader([chain: 1], at: 10_000_000 + hour)
    #expect(objects.deletable(by: behind).isEmpty)
    #expect(objects.replaceable(by: due) == [read, fold].sorted())
  }

  @Test mutating func `an old epoch's parcels stay until a handover is there`() {
    let chain = fixture.chain(fixture.creator)
    let newest = fixture.newest
    var objects = CarrierObjects()
    let (old, new, handover) = (fixture.name(), fixture.name(), fixture.name(.handover))
    objects[old] = fixture.known(fixture.parcel(through: [chain: 1]))
    objects[new] = KnownObject(
      state: .counted(fixture.parcel(through: [chain: 1])), epoch: newest.id, bytes: 4_096,
      firstSeen: 0, isSeen: true)
    let reader = fixture.reader(
      [chain: 1], at: 10_000_000 + hour, epochs: [newest, fixture.epoch])
    var names = objects.deletable(by: reader)
    #expect(names == [old])
    #expect(!objects.reachAll(without: names, reader), "others cannot open the new parcel")

    var parcel = Parcel(by: fixture.creator.id, at: HybridTime(rawValue: 1))
    parcel.recipients = fixture.roster.sortedMembers.map(\.device)
    objects[handover] = KnownObject(
      state: .handover(parcel, to: newest.id), epoch: fixture.epoch.id, bytes: 7_424,
      firstSeen: 0, isSeen: false)
    #expect(objects.epochsWithoutHandover(reader).isEmpty)
    #expect(!objects.reachAll(without: names, reader), "no listing has shown the handover")

    // It arrived torn: another, which is there, is the one to keep.
    let listing = [old: 4_096, new: 4_096, handover: 7_000]
    objects.compare(with: listing, reader)
    #expect(objects[handover]?.missingSince != nil && objects[handover]?.bytes == 7_424)
    #expect(!objects.reachAll(without: names, reader))
    let another = fixture.name(.handover)
    objects[another] = fixture.object(.handover(parcel, to: newest.id), bytes: 7_424)
    names = objects.deletable(by: reader)
    #expect(!names.contains(another) && names.contains(old))
    #expect(objects.reachAll(without: names, reader))
  }

  @Test mutating func `an object that does not open is deleted an hour later`() {
    var objects = CarrierObjects()
    let name = fixture.name()
    objects[name] = fixture.object(.unreadable(since: 10_000_000))
    #expect(objects.deletable(by: fixture.reader([:], at: 10_000_000 + hour - 1)).isEmpty)
    #expect(objects.deletable(by: fixture.reader([:], at: 10_000_000 + hour)) == [name])
  }

  @Test mutating func `of one author only some parcels wait`() {
    var carrier = Carrier()
    let reader = fixture.reader([:])
    let chain = fixture.chain(fixture.second)
    for _ in 0...Limits.waitingParcels {
      let name = fixture.name()
      carrier.objects[name] = fixture.object()
      let parcel = fixture.parcel(by: fixture.second, above: [chain: 5], through: [chain: 6])
      carrier.took(name, parcel, [], .unjudged, reader)
    }
    let states = carrier.objects.known.values.map(\.state)
    #expect(states.count { if case .waiting = $0 { true } else { false } } == Limits.waitingParcels)
    #expect(states.count { if case .unreadable = $0 { true } else { false } } == 1)
  }

  @Test mutating func `a known object is restored from its row`() {
    let parcel = fixture.parcel(through: [fixture.chain(fixture.creator): 1])
    for isCounted in [true, false] {
      var object = fixture.known(parcel, isCounted: isCounted)
      object.missingSince = 5
      let again = KnownObject(decoding: object.encoded(), account: fixture.account)
      #expect(again?.parcel?.stores == parcel.stores)
      #expect(again?.missingSince == 5)
    }
    #expect(KnownObject(decoding: [1, 2, 3], account: fixture.account) == nil)
  }
}
