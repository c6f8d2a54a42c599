import KithCrypto
import Testing

@testable import KithCore

/// Which change sets a store keeps, and how far it covers each chain, without a store.
@Suite struct ChangeSetLogTests {
  private let store = TestWorld.store
  private let one = chain(1)
  private let two = chain(2)

  private func log(_ changeSets: [ChangeSet]) -> ChangeSetLog {
    var log = ChangeSetLog()
    for changeSet in changeSets { log.insert(changeSet) }
    return log
  }

  private func location(_ changeSet: ChangeSet, _ index: UInt32 = 0) -> EntryLocation {
    EntryLocation(changeSet: changeSet.reference, index: index)
  }

  @Test(
    arguments: [
      ([1, 2, 3], 0, 2, 2), ([1, 2, 3], 0, 9, 3), ([3], 0, 2, 2), ([1, 2, 3], 2, 2, nil),
      ([1, 2, 3], 3, 1, nil), ([], 0, 4, nil),
    ] as [([UInt64], UInt64, UInt64, UInt64?)])
  func `coverage rises up to a received header, and never falls`(
    received: [UInt64], before: UInt64, through: UInt64, rises: UInt64?
  ) {
    var log = log(received.map { unsigned($0, of: one) })
    let covered = [before, through].map { log.cover(one, through: $0) }
    let now = rises ?? before
    #expect(covered[1] == rises && log.vector == (now > 0 ? [one: now] : [:]))
    #expect(log.holdsUncovered == (now < received.max() ?? 0))
    #expect((1...4).filter { log.isCovered(unsigned($0, of: one).header) }.count == now)
  }

  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `the vector and the incarnations are always those of the chains`(seed: UInt64) {
    var random = SeededEntropy(seed: seed)
    let chains = [1, 2, 3].flatMap { [chain($0), chain($0, incarnation: 2)] }
    var log = ChangeSetLog()
    for _ in 0..<100 {
      let chain = chains[Int.random(in: 0..<chains.count, using: &random)]
      let sequence = UInt64.random(in: 1...9, using: &random)
      switch Int.random(in: 0..<12, using: &random) {
      case 0..<4: log.insert(unsigned(sequence, of: chain))
      case 4..<8: _ = log.cover(chain, through: sequence)
      case 8: log.restore(chain, covered: sequence)
      case 9: log.restore(chain, lost: sequence)
      case 10: _ = log.drop(chains: { $0 == chain }, in: store)
      default:
        if Bool.random(using: &random) { _ = log.lose(in: store) }
        if sequence == 9 { log.withhold([chain.device]) }
      }
      let covered = log.chains.mapValues(\.covered)
      #expect(log.vector == covered.filter { $0.value > 0 && !log.isWithheld($0.key.device) })
      let incarnations = Dictionary(grouping: log.chains.keys, by: \.device)
      #expect(log.incarnations == incarnations.mapValues { Set($0.map(\.incarnation)) })
      #expect(log.holdsWithheld == log.chains.keys.contains { log.isWithheld($0.device) })
    }
  }

  @Test func `the chains that published last are named first, with what is covered`() {
    let chains = (1...4).map { chain($0) }
    let clocks: [UInt64] = [5, 9, 5, 1]
    var log = log(zip(chains, clocks).map { unsigned(1, of: $0, clock: HybridTime(rawValue: $1)) })
    for chain in chains { _ = log.cover(chain, through: 1) }
    // Received, not covered: it decides the order alone.
    log.insert(unsigned(2, of: chains[3], clock: HybridTime(rawValue: 7)))
    let order = [1, 3, 0, 2]
    for count in [1, 3, 9] {
      let latest = log.latest(count, of: log.vector)
      #expect(latest.map(\.chain) == order.prefix(count).map { chains[$0] })
      #expect(latest.map(\.clock.rawValue) == Array([9, 7, 5, 5].prefix(count)))
      #expect(latest.allSatisfy { $0.covered == 1 })
    }
  }

  @Test func `withheld chains are neither covered nor sent, until they are dropped`() {
    var log = log([(2, two), (5, one), (1, two), (3, one)].map { unsigned($0, of: $1) })
    for chain in [one, two] { _ = log.cover(chain, through: 5) }
    log.restore(two, lost: 1)
    #expect(!log.holdsUncovered && log.hasLost)
    #expect(log.changeSets(above: [one: 3]).map(\.sequence) == [5, 1, 2], "in order of the chains")
    log.withhold([two.device])
    #expect(log.holdsUncovered && !log.hasLost, "nobody returns a revoked device's data")
    #expect(log.vector == [one: 5] && log.changeSets(above: [:]).map(\.sequence) == [3, 5])
    log.insert(unsigned(3, of: two))
    let covered = log.cover(two, through: 3)
    let isDropped = (0..<2).map { _ in !log.dropWithheld(in: store).isEmpty }
    #expect(covered == nil && isDropped == [true, false] && !log.holdsUncovered)
  }

  @Test(
    arguments: [
      ([], 1, []), ([1], 2, [1]), ([1], 5, [1]), ([3], 2, []), ([3], 3, []), ([3, 3], 4, [3, 3]),
      ([1, 3], 4, [3]),
    ] as [([UInt64], UInt64, [UInt64])])
  func `a new newest one returns those before it`(
    kept: [UInt64], next: UInt64, returned: [UInt64]
  ) {
    var log = log(kept.enumerated().map { unsigned($1, of: one, mark: UInt8($0)) })
    let before = log.insert(unsigned(next, of: one, mark: 9))
    #expect(before.map(\.sequence) == returned && Set(before).count == returned.count)
  }

  @Test func `two change sets of one sequence are a fork`() {
    let (left, right) = (unsigned(2, of: one), unsigned(2, of: one, mark: 1))
    var log = log([left, unsigned(3, of: one)])
    #expect(log.knows(left.reference) && !log.isFork(left.reference))
    #expect(!log.knows(right.reference) && log.isFork(right.reference))
    log.insert(right)
    #expect(log.isFork(left.reference))
    _ = log.drop([location(right)], in: store)
    #expect(!log.isFork(left.reference))
  }

  /// The chain's change sets are 1 with two entries, 2 without any, and 3 with one.
  @Test func `a change set without entries is dropped, but not its chain's newest`() {
    let all = zip([1, 2, 3], [[10, 20], [], [30]]).map { unsigned($0, of: one, boxes: $1) }
    let (first, empty, last) = (all[0], all[1], all[2])
    let gone = [first, empty].map { Mutation.remove(.store(store, .changeSet($0.reference))) }
    let cases: [([EntryLocation], considered: ChangeSet?, [Mutation], freed: Int)] = [
      ([location(first, 1)], nil, [.remove(.store(store, .entry(first.reference, 1)))], 20 + 256),
      (
        [location(first, 0), location(first, 1)], nil,
        [0, 1].map { .remove(.store(store, .entry(first.reference, $0))) } + [gone[0]],
        first.weight
      ),
      ([location(last)], nil, [.remove(.store(store, .entry(last.reference, 0)))], 30 + 256),
      ([], empty, [gone[1]], empty.weight),
      ([location(first, 2), location(unsigned(9, of: one))], first, [], 0),
    ]
    for (locations, considered, wanted, freed) in cases {
      var log = log(all)
      let candidates = considered.map { [$0.reference] } ?? []
      let mutations = log.drop(locations, alsoConsidering: candidates, in: store)
      let left = all.reduce(0) { $0 + $1.weight } - freed
      #expect(mutations == wanted && log.weights.total == left)
      #expect(log.weights.byAuthor == [one.device: left])
      // A repair brings a box back, and counts it once.
      for _ in 0..<2 { log.restore(boxOf: 30, to: location(last)) }
      #expect(log.weights.total == left + (locations == [location(last)] ? freed : 0))
    }
  }

  @Test func `dropped chains leave nothing, and others stay`() {
    let (gone, stays) = (unsigned(1, of: one), unsigned(1, of: two))
    var log = log([gone, stays])
    for changeSet in [gone, stays] {
      log.restore(changeSet.header.chain, lost: 4)
      _ = log.quarantine(location(changeSet))
    }
    let mutations = log.drop(chains: { $0 == one }, in: store)
    #expect(
      mutations == [
        .remove(.store(store, .changeSet(gone.reference))),
        .remove(.store(store, .entry(gone.reference, 0))),
        .remove(.store(store, .vector(one))), .remove(.store(store, .lost(one))),
      ])
    #expect(Array(log.chains.keys) == [two] && log.lost == [two: 4])
    #expect(
      log.quarantined == [location(stays)] && log.weights.byAuthor == [two.device: stays.weight])
  }

  @Test func `after damage nothing is covered, until as much is covered again`() {
    var log = log([1, 2, 3].map { unsigned($0, of: one) })
    log.restore(one, covered: 4)
    #expect(log.chains[one]?.received == 4, "no sequence is given again")
    log.restore(one, lost: 5)
    #expect(log.vector == [one: 4] && log.hasLost && log.chains[one]?.received == 5)
    let mutations = log.lose(in: store)
    let (device, incarnation) = (one.device, one.incarnation)
    #expect(
      mutations == [
        .put(
          .store(store, .lost(ChainID(device: device, incarnation: incarnation))), UInt64(5).row),
        .remove(.store(store, .vector(ChainID(device: device, incarnation: incarnation)))),
      ])
    #expect(log.vector.isEmpty && log.lost == [one: 5])
    let regained = [4, 5, 6].map { log.regain(one, through: $0, in: store) }
    #expect(
      regained == [
        [], [.remove(.store(store, .lost(ChainID(device: device, incarnation: incarnation))))], [],
      ] && !log.hasLost)
  }
}

/// A chain of a device whose id is this number.
func chain(_ number: UInt8, incarnation: UInt64 = 1) -> ChainID {
  let device = DeviceID { $0.initializeMemory(as: UInt8.self, repeating: number) }
  return ChainID(device: device, incarnation: Incarnation(rawValue: incarnation))
}

/// A change set with boxes of these sizes, and no signature: a log checks none. Two of one sequence
/// with different marks are a fork.
func unsigned(
  _ sequence: UInt64, of chain: ChainID, boxes: [Int] = [10], mark: UInt8 = 0,
  clock: HybridTime = .zero
) -> ChangeSet {
  let header = ChangeSetHeader(
    storeTag: Digest128 { $0[0] = mark }, epoch: EpochID(Blake2b.digest256([])), chain: chain,
    sequence: sequence, clock: clock, noncePrefix: NoncePrefix { _ in }, entryDigests: [])
  var stored = StoredChangeSet(header: header.encoded(), signature: [])
  for (index, bytes) in boxes.enumerated() {
    stored.entries[UInt32(index)] = [UInt8](repeating: 0, count: bytes)
  }
  return ChangeSet(header: header, stored: stored)
}
