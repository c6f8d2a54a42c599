import KithCrypto
import Testing

@testable import KithCore

/// A store on two members of one account, without replicas or sessions.
struct StorePair {
  var fixture: Fixture
  var roster: Roster
  var keyrings: [Keyring]
  let keys: [DeviceKeys]
  var stores: [StoreReplica]
  var clock = TimeKeeper()
  var entropy: any Entropy = SeededEntropy(seed: 5)

  init(policy: Policy = .standard) throws {
    var fixture = try Fixture()
    let keys = [fixture.creator, deviceKeys(2)]
    var roster = fixture.roster(fixture.records)
    var keyrings = [Keyring(), Keyring()]
    keyrings[0].refresh(from: roster, keys: keys[0])
    let request = try JoinRequest.make(
      account: fixture.account, keys: keys[1], name: "second", issued: 2)
    let accepted = try JoinRequest.accept(
      request, roster: roster, keyring: keyrings[0], keys: keys[0], entropy: &fixture.entropy)
    _ = roster.learn(all: accepted)
    for index in 0..<2 { keyrings[index].refresh(from: roster, keys: keys[index]) }
    self.fixture = fixture
    self.roster = roster
    self.keyrings = keyrings
    self.keys = keys
    stores = (0..<2).map { _ in StoreReplica(identifier: TestWorld.store, policy: policy) }
    advance()
  }

  /// Lets a second pass.
  mutating func advance() {
    clock.update(
      at: Instant(
        wallMilliseconds: max(TestWorld.origin, clock.now.wallMilliseconds) + 1_000,
        monotonicMilliseconds: clock.now.monotonicMilliseconds + 1_000))
  }

  func chain(_ index: Int) -> ChainID {
    ChainID(device: keys[index].id, incarnation: Incarnation(rawValue: UInt64(index) + 1))
  }

  mutating func sealer(
    _ index: Int, for store: StoreIdentifier = TestWorld.store
  ) throws -> Sealer {
    let epoch = try #require(keyrings[index].current)
    let certificate = try #require(roster.certificate(of: keys[index].id))
    let box = keyrings[index].sharedBox(epoch: epoch.id, author: certificate)
    return Sealer(
      box: try #require(box), storeTag: epoch.storeTag(of: store), epoch: epoch.id,
      chain: chain(index), account: fixture.account, keys: keys[index])
  }

  @discardableResult
  mutating func write(_ operations: [KithCore.Operation], on index: Int) throws -> [ViewChange] {
    let author = keys[index].id
    return try stores[index].write(operations, author: author, clock: &clock)
  }

  /// Writes and publishes.
  mutating func publish(_ operations: [KithCore.Operation], by index: Int) throws -> Batch {
    try write(operations, on: index)
    let sealer = try sealer(index)
    let published = stores[index].publish(by: sealer, clock: &clock, entropy: &entropy)
    return try #require(published.batch)
  }

  /// Has a store take in a batch of the other.
  mutating func take(
    _ batch: Batch, on index: Int, _ origin: BatchOrigin = .session(after: nil)
  ) -> AppliedBatch {
    let own = keys[index].id
    var judge = Judge(own: own, ownChain: chain(index), roster: roster)
    for device in keys.map(\.id) {
      judge.budgets[device] = AuthorBudget(
        of: device, beside: batch.store, among: [:], own: own)
    }
    return stores[index].apply(
      batch, tainted: Taint(), from: keys[1 - index].id, origin, by: judge,
      &keyrings[index], at: clock.now.wallMilliseconds)
  }

  func shown(_ key: Key, on index: Int) -> EncodedValue? { stores[index].state.shown[key]?.value }
}

extension AppliedBatch {
  var relayed: Batch? { if case .batch(let batch) = relay { batch } else { nil } }

  var relayedInWords: String {
    switch relay {
    case .nothing: "nothing"
    case .pieces: "pieces"
    case .batch(let batch):
      "\(batch.changeSets.count) change sets, \(batch.covers.count) covers"
    }
  }
}
