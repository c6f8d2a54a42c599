import KithCrypto

@testable import KithCore

/// An account with two members and a parcel's parts.
struct CarrierFixture {
  var fixture: Fixture
  let second = deviceKeys(2)
  let roster: Roster
  let keyring: Keyring
  let epoch: EpochKeys
  let store = StoreIdentifier("com.example.Bookmarks")!
  var entropy = SeededEntropy(seed: 5)

  init() throws {
    fixture = try Fixture()
    roster = fixture.roster(
      fixture.records + [try fixture.certificate(of: second, by: fixture.creator)])
    var keyring = Keyring()
    keyring.refresh(from: roster, keys: fixture.creator)
    self.keyring = keyring
    epoch = keyring.newestFirst[0]
  }

  var account: AccountID { fixture.account }
  var creator: DeviceKeys { fixture.creator }

  func chain(_ keys: DeviceKeys) -> ChainID {
    ChainID(device: keys.id, incarnation: Incarnation(rawValue: 7))
  }

  func parcel(
    by keys: DeviceKeys? = nil, above: [ChainID: UInt64] = [:], through: [ChainID: UInt64],
    clock: UInt64 = 1
  ) -> Parcel {
    let author = keys ?? creator
    var parcel = Parcel(by: author.id, at: HybridTime(rawValue: clock))
    let have = StoreHave(store: store, vector: through, digest: nil, policy: .standard)
    parcel.stores = [Parcel.Store(have: have, above: above)]
    parcel.part.group = clock
    return parcel
  }

  func known(
    _ parcel: Parcel, firstSeen: UInt64 = 0, isCounted: Bool = true
  ) -> KnownObject {
    KnownObject(
      state: isCounted ? .counted(parcel) : .waiting(parcel), epoch: epoch.id, bytes: 4_096,
      firstSeen: firstSeen, isSeen: true)
  }

  func reader(
    _ vector: [ChainID: UInt64], at wall: UInt64 = 10_000_000, empty: [StoreIdentifier] = [],
    epochs: [EpochKeys]? = nil
  ) -> CarrierReader {
    let epochs = epochs ?? keyring.newestFirst
    var timeKeeper = TimeKeeper()
    timeKeeper.update(at: Instant(wallMilliseconds: wall, monotonicMilliseconds: wall))
    var stores: [StoreIdentifier: CarrierReader.Own] = [:]
    for each in empty + [store] {
      stores[each] = CarrierReader.Own(
        vector: each == store ? vector : [:], digest: Blake2b.digest256([1]), policy: .standard,
        refused: [])
    }
    return CarrierReader(
      device: creator.id, stores: stores,
      roster: roster, rosterDigest: roster.digest, epoch: epochs[0], epochs: epochs,
      timeKeeper: timeKeeper, parcelsBeforeFold: 2, isWithholding: false)
  }

  mutating func name(_ kind: ObjectName.Kind = .parcel) -> ObjectName {
    ObjectName(kind, of: epoch, entropy: &entropy)
  }
}
