import KithCrypto
import Testing

@testable import KithCore

/// The objects that a device puts in one turn, without a carrier.
struct DepositTests {
  let fixture: CarrierFixture
  let mine: ChainID

  init() throws {
    fixture = try CarrierFixture()
    mine = fixture.chain(fixture.creator)
  }

  /// An author of stores with so many change sets. A parcel ends after `part` of them.
  func author(_ counts: [UInt64], part: Int = 9, _ reader: CarrierReader? = nil) -> ParcelAuthor {
    var logs: [StoreIdentifier: ChangeSetLog] = [:]
    for (store, count) in zip([fixture.store, TestWorld.store], counts) {
      var log = ChangeSetLog()
      for sequence in 1...count { log.insert(unsigned(sequence, of: mine)) }
      _ = log.cover(mine, through: count)
      logs[store] = log
    }
    return fixture.author(
      reader ?? fixture.reader([:], empty: [TestWorld.store]), logs: logs,
      partBytes: part * unsigned(1, of: mine).weight)
  }

  /// A deposit of each store's share, the records and a statement.
  func deposit(_ author: ParcelAuthor, isAll: Bool = false) -> Deposit {
    var plan = Carrier.Plan()
    plan.shares = author.logs.keys.sorted().map {
      Deposit.Share(store: $0, above: [:], isEverything: isAll, policy: .standard)
    }
    (plan.needsRecords, plan.replaces) = (true, [ObjectName(Digest128 { _ in })])
    var deposit = Deposit(handovers: author.reader.olderEpochs, under: author.reader.epoch?.id)
    deposit.put(plan, [StatementGroup(Extent(fixture.store, entries: [:]))], author)
    return deposit
  }

  func next(_ deposit: inout Deposit, _ author: ParcelAuthor, seed: Int = 0) -> Deposit.Next {
    var (timeKeeper, entropy) = (author.reader.timeKeeper, SeededEntropy(seed: UInt64(seed)))
    return deposit.next(by: author, clock: &timeKeeper, entropy: &entropy)
  }

  func objects(_ deposit: Deposit, _ author: ParcelAuthor) -> [OutboundObject] {
    var (deposit, objects) = (deposit, [OutboundObject]())
    while case .put(let object) = next(&deposit, author, seed: objects.count) {
      objects.append(object)
    }
    return objects
  }

  @Test(
    arguments: [
      ([1, 2], 3, [[[1], [1, 2]]]), ([1, 2], 2, [[[1]], [[1, 2]]]),
      ([5], 2, [[[1, 2]], [[3, 4]], [[5]]]),
    ] as [([UInt64], Int, [[[UInt64]]])])
  func `large shares go in parcels of their own, and very large ones in parts`(
    counts: [UInt64], part: Int, brought: [[[UInt64]]]
  ) {
    let author = author(counts, part: part)
    for isAll in [false, true] {
      let objects = objects(deposit(author, isAll: isAll), author)
      #expect(objects.map { $0.batches.map { $0.changeSets.map(\.sequence) } } == brought)
      // Only the last parcel has records and statements, and replaces others.
      let (parcels, last) = (objects.map(\.parcel), objects.count - 1)
      #expect(objects.indices.filter { !objects[$0].records.isEmpty } == [last])
      #expect(parcels.indices.filter { parcels[$0].rosterDigest != nil } == [last])
      #expect(parcels.indices.filter { !parcels[$0].statements.isEmpty } == [last])
      #expect(parcels.indices.filter { !parcels[$0].replaces.isEmpty } == [last])
      let isParted = counts == [5]
      #expect(parcels.map(\.part.index) == (isParted ? [0, 1, 2] : parcels.map { _ in 0 }))
      #expect(Set(parcels.map(\.part.group)).count == (isParted ? 1 : parcels.count))
      for parcel in parcels {
        #expect(parcel.part.isLast == (!isParted || parcel.part.index == last))
        // The last part tells what all bring; an earlier one with everything, what it repairs.
        for have in parcel.stores.map(\.have) {
          #expect((have.vector[mine] != nil) == (parcel.part.isLast || isAll))
          #expect((have.digest != nil) == (parcel.part.isLast || isAll))
        }
      }
    }
  }

  @Test func `handovers follow the parcels, under the names of older epochs`() throws {
    let (newest, older) = (fixture.newest, fixture.epoch)
    let author = author([1], fixture.reader([:], epochs: [newest, older]))
    var deposit = deposit(author)
    let objects = objects(deposit, author)
    let origins = objects.compactMap { $0.name.origin(among: [newest, older]) }
    #expect(origins.map(\.kind) == [.parcel, .handover])
    #expect(origins.map(\.epoch.id) == [newest.id, older.id])
    #expect(objects[1].parcel.recipients == fixture.roster.sortedMembers.map(\.device))
    let states: [KnownObject.State] = [
      .counted(objects[0].parcel), .handover(objects[1].parcel, to: newest.id),
    ]
    for (seed, object) in objects.enumerated() {
      _ = next(&deposit, author, seed: seed)
      let noted = [objects[1 - seed].name, object.name, object.name].map {
        deposit.stored($0, bytes: 5_000)
      }
      let known = KnownObject(
        state: states[seed], epoch: origins[seed].epoch.id, bytes: 5_000,
        firstSeen: author.reader.now.wallMilliseconds, isSeen: false)
      #expect(noted == [nil, known, nil])
    }
    guard case .done = next(&deposit, author) else { throw BrokenFixture() }
  }

  @Test func `a deposit that would be another answer ends`() {
    var limits = Policy.standard
    limits.keys += 1
    let cases: [(String, CarrierReader, isStale: Bool, isStaleAfterAll: Bool)] = [
      ("nothing changed", fixture.reader([:]), false, false),
      ("another epoch", fixture.reader([:], epochs: [fixture.newest]), true, true),
      ("entries are withheld", fixture.reader([:], isWithholding: true), true, true),
      ("limits, which matter to what is left", fixture.reader([:], policy: limits), true, false),
    ]
    for (name, reader, isStale, isStaleAfterAll) in cases {
      var deposit = deposit(author([1]))
      for wanted in [isStale, isStaleAfterAll] {
        var changed = deposit
        let outcome = next(&changed, author([1], reader))
        let isEnded = if case .stale = outcome { true } else { false }
        #expect(isEnded == wanted, "\(name)")
        _ = next(&deposit, author([1]))
      }
    }
  }
}
