import KithCrypto
import Testing

@testable import KithCore

/// An account with two members, a revoked device, and objects.
struct CarrierFixture {
  var fixture: Fixture
  let second = deviceKeys(2)
  let revoked = deviceKeys(3)
  let roster: Roster
  let keyring: Keyring
  let epoch: EpochKeys
  /// A later epoch, which the keyring lacks.
  let newest: EpochKeys
  let store = StoreIdentifier("com.example.Bookmarks")!
  var entropy = SeededEntropy(seed: 5)

  /// The state's digest in each store of a reader.
  static let digest = Blake2b.digest256([1])

  init() throws {
    fixture = try Fixture()
    roster = fixture.roster(
      try fixture.records + [
        fixture.certificate(of: second, by: fixture.creator),
        fixture.certificate(of: revoked, by: fixture.creator),
        fixture.revocation(of: revoked.id, by: fixture.creator),
      ])
    var keyring = Keyring()
    keyring.refresh(from: roster, keys: fixture.creator)
    self.keyring = keyring
    epoch = keyring.newestFirst[0]
    newest = EpochKeys(secret: EpochSecret(random: &entropy), generation: epoch.generation + 1)
  }

  var account: AccountID { fixture.account }
  var creator: DeviceKeys { fixture.creator }

  func chain(_ keys: DeviceKeys) -> ChainID {
    ChainID(device: keys.id, incarnation: Incarnation(rawValue: 7))
  }

  var carrierKeys: CarrierKeys {
    CarrierKeys(recovery: roster.genesis!.recoveryBoxKey)
  }

  func body(
    by keys: DeviceKeys? = nil, above: [ChainID: UInt64] = [:], through: [ChainID: UInt64],
    clock: UInt64 = 1, level: UInt8 = 0, digest: Digest256? = nil, under epoch: EpochKeys? = nil
  ) -> ObjectBody {
    var body = ObjectBody(
      by: (keys ?? creator).id, at: HybridTime(rawValue: clock), under: (epoch ?? self.epoch).id)
    body.parts = [part(store, above: above, through: through, digest: digest)]
    body.level = level
    return body
  }

  func part(
    _ store: StoreIdentifier, above: [ChainID: UInt64] = [:], through: [ChainID: UInt64],
    digest: Digest256? = nil
  ) -> ObjectBody.Part {
    let have = StoreHave(store: store, vector: through, digest: digest, policy: .standard)
    return ObjectBody.Part(have: have, above: above)
  }

  func known(
    _ body: ObjectBody, without: Set<StoreIdentifier> = [], seenSince: UInt64? = 0
  ) -> KnownObject {
    KnownObject(state: .applied(body, without: without), bytes: 4_096, seenSince: seenSince)
  }

  func object(_ state: KnownObject.State = .unread, bytes: Int = 4_096) -> KnownObject {
    KnownObject(state: state, bytes: bytes, seenSince: 0)
  }

  func reader(
    _ vector: [ChainID: UInt64], at wall: UInt64 = 10_000_000, empty: [StoreIdentifier] = [],
    epoch: EpochKeys? = nil, policy: Policy = .standard, refused: Set<DeviceID> = [],
    roster: Roster? = nil, isWithholding: Bool = false
  ) -> CarrierReader {
    let roster = roster ?? self.roster
    var timeKeeper = TimeKeeper()
    timeKeeper.update(at: Instant(wallMilliseconds: wall, monotonicMilliseconds: wall))
    var stores: [StoreIdentifier: CarrierReader.Own] = [:]
    for each in empty + [store] {
      stores[each] = CarrierReader.Own(
        vector: each == store ? vector : [:], digest: Self.digest, policy: policy,
        refused: refused)
    }
    return CarrierReader(
      device: creator.id, stores: stores,
      roster: roster, epoch: epoch ?? self.epoch,
      timeKeeper: timeKeeper, isWithholding: isWithholding)
  }

  /// The creator, as it makes objects.
  func author(
    _ reader: CarrierReader, logs: [StoreIdentifier: ChangeSetLog] = [:], objectBytes: Int = .max,
    levelBytes: Int = 4_096
  ) -> ObjectAuthor {
    ObjectAuthor(
      account: account, carrierKeys: carrierKeys, keys: creator, reader: reader, logs: logs,
      objectBytes: objectBytes, levelBytes: levelBytes)
  }

  /// One of the creator, with its signature and without a box that opens.
  mutating func changeSet(_ sequence: UInt64, bytes: Int = 1) throws -> ChangeSet {
    var keyring = keyring
    let certificate = try #require(roster.certificate(of: creator.id))
    let box = keyring.sharedBox(epoch: epoch.id, author: certificate)
    let sealer = Sealer(
      box: try #require(box), storeTag: epoch.storeTag(of: store), epoch: epoch.id,
      chain: chain(creator),
      account: account, keys: creator)
    return sealer.seal(
      [[UInt8](repeating: 1, count: bytes)], sequence: sequence,
      clock: HybridTime(rawValue: sequence),
      noncePrefix: entropy.draw())
  }

  mutating func name() -> ObjectName { ObjectName(of: carrierKeys, entropy: &entropy) }
}
