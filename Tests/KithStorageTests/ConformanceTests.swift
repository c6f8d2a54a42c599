import Foundation
import KithCore
import KithCrypto
import Testing

@testable import KithStorage

@Suite struct ConformanceTests {
  let store = MutationSource.stores[0]
  let device = DeviceID { $0.copyBytes(from: [UInt8](repeating: 7, count: 32)) }
  let incarnation = Incarnation(rawValue: .max)
  var chain: ChainID { ChainID(device: device, incarnation: incarnation) }

  func header(_ sequence: UInt64, _ header: UInt8 = 1) -> Mutation {
    .put(
      .store(store, .changeSet(reference(sequence))),
      StoredChangeSet(header: [header], signature: [header]).row)
  }

  func entry(_ sequence: UInt64, _ index: UInt32, _ box: [UInt8]) -> Mutation {
    .put(.store(store, .entry(reference(sequence), index)), box)
  }

  func gone(_ sequence: UInt64, _ index: UInt32) -> Mutation {
    .remove(.store(store, .entry(reference(sequence), index)))
  }

  func reference(_ sequence: UInt64) -> ChangeSetReference {
    ChangeSetReference(
      device: device, incarnation: incarnation, sequence: sequence,
      digest: Blake2b.digest256([UInt8(truncatingIfNeeded: sequence)]))
  }

  @Test(arguments: Backend.allCases)
  func everyKindOfMutationSurvives(backend: Backend) throws {
    var policy = Policy.standard
    policy.keys = 3
    let digest = Blake2b.digest256([1])
    let horizon = Horizon(
      clock: HybridTime(rawValue: .max - 2), isBelow: true, unseen: [device, device])
    try backend.withSubject { subject in
      #expect(try subject.storage.load() == Snapshot())
      try subject.storage.commit([
        .put(.clock, HybridTime(rawValue: .max).row), .put(.incarnation, incarnation.row),
        .put(.keepsHistory, [0]),
        .put(.record(digest), [1, 2]), .addresses(device, ["b:1", "a:2"]),
        .put(.store(store, .policy), policy.row),
        .put(
          .store(store, .changeSet(reference(1))), StoredChangeSet(header: [3], signature: [4]).row),
        .put(.store(store, .entry(reference(1), .max)), []),
        entry(1, 0, [5]),
        .put(
          .store(store, .changeSet(reference(1 << 53))),
          StoredChangeSet(header: [6], signature: [7]).row),
        .put(.store(store, .vector(chain)), UInt64.max.row), .put(.store(store, .opened), [1]),
        .put(.store(store, .adopted), HybridTime(rawValue: .max - 1).row),
        .put(.store(store, .lost(chain)), UInt64(5).row), .remove(.damaged),
        .put(.store(store, .loss), StoreLoss(rows: 9, isAccepted: true).row),
        .put(.store(store, .horizon), horizon.row),
        .put(.store(store, .draft(.max)), [8]), .put(.store(store, .refusal(1)), []),
        .put(.store(store, .pastValue(.max)), [9]),
      ])
      var expected = Snapshot()
      expected.clock = HybridTime(rawValue: .max)
      expected.incarnation = incarnation
      expected.keepsHistory = false
      expected.records = [digest: [1, 2]]
      expected.addresses = [device: ["b:1", "a:2"]]
      var stored = StoredStore(policy: policy)
      stored.vector = [chain: .max]
      stored.isUsedHere = true
      stored.adopted = HybridTime(rawValue: .max - 1)
      stored.lost = [chain: 5]
      stored.loss = StoreLoss(rows: 9, isAccepted: true)
      stored.horizon = horizon
      stored.changeSets = [
        reference(1): StoredChangeSet(header: [3], signature: [4], entries: [.max: [], 0: [5]]),
        reference(1 << 53): StoredChangeSet(header: [6], signature: [7]),
      ]
      stored.drafts = [.max: [8]]
      stored.refusals = [1: []]
      stored.pastValues = [.max: [9]]
      expected.stores = [store: stored]
      #expect(try subject.storage.load() == expected)
      #expect(try subject.reload() == expected)
      // A change of limits leaves the rest.
      try subject.storage.commit([
        .put(.store(store, .policy), Policy.standard.row), .put(.keepsHistory, [1]),
        .remove(.store(store, .lost(chain))), .remove(.store(store, .loss)),
        .put(.store(store, .horizon), Horizon().row),
      ])
      let reloaded = try subject.reload()
      #expect(reloaded.keepsHistory)
      let changed = reloaded.stores[store]
      #expect(changed?.isUsedHere == true && changed?.policy == .standard && changed?.lost == [:])
      #expect(changed?.horizon == Horizon())
      #expect(changed?.loss == nil && changed?.adopted == HybridTime(rawValue: .max - 1))
    }
  }

  @Test(arguments: Backend.allCases)
  func removalsTakeWhatTheyName(backend: Backend) throws {
    try backend.withSubject { subject in
      try subject.storage.commit([
        .put(.store(store, .policy), Policy.standard.row),
        header(1),
        entry(1, 0, [1]),
        entry(1, 1, [2]),
        header(2, 2),
        entry(2, 0, [3]),
        entry(2, 1, [4]),
        .put(.store(store, .vector(chain)), UInt64(2).row), .addresses(device, ["a:1"]),
        .put(.record(Blake2b.digest256([1])), [1]), .put(.record(Blake2b.digest256([2])), [2]),
        .put(.store(store, .draft(1)), [1]), .put(.store(store, .refusal(1)), [1]),
        .put(.store(store, .pastValue(1)), [1]),
      ])
      try subject.storage.commit([
        .remove(.store(store, .changeSet(reference(1)))), gone(1, 0), gone(1, 1), gone(2, 0),
        gone(2, 1), .remove(.store(store, .vector(chain))),
        .addresses(device, []), .remove(.store(store, .draft(1))),
        .remove(.store(store, .refusal(1))),
        .remove(.store(store, .pastValue(1))),
        .remove(.record(Blake2b.digest256([1]))),
        // A change set that comes back has none of its old entries.
        header(1, 9),
        .put(.store(store, .policy), Policy(keys: 1).row),
      ])
      var stored = StoredStore(policy: Policy(keys: 1))
      stored.changeSets = [
        reference(1): StoredChangeSet(header: [9], signature: [9]),
        reference(2): StoredChangeSet(header: [2], signature: [2]),
      ]
      var expected = Snapshot()
      expected.records = [Blake2b.digest256([2]): [2]]
      expected.stores = [store: stored]
      #expect(try subject.reload() == expected)
    }
  }

  @Test(arguments: Backend.allCases)
  func theLastMutationOfARowCounts(backend: Backend) throws {
    try backend.withSubject { subject in
      try subject.storage.commit([
        .put(.store(store, .policy), Policy.standard.row),
        .put(.store(store, .draft(2)), [1]), .remove(.store(store, .draft(2))),
        .put(.store(store, .draft(3)), [1]), .put(.store(store, .draft(3)), [2]),
        .put(.clock, HybridTime(rawValue: 5).row), .put(.clock, HybridTime(rawValue: 3).row),
        header(1, 9), header(1), header(2), .remove(.store(store, .changeSet(reference(2)))),
        .remove(.store(store, .draft(4))), .put(.store(store, .draft(4)), [4]),
      ])
      let snapshot = try subject.reload()
      #expect(snapshot.stores[store]?.drafts == [3: [2], 4: [4]])
      #expect(snapshot.clock == HybridTime(rawValue: 3))
      #expect(
        snapshot.stores[store]?.changeSets
          == [reference(1): StoredChangeSet(header: [1], signature: [1])])
    }
  }

  /// As when a write supersedes entries of several change sets at once.
  @Test(arguments: Backend.allCases)
  func severalEntriesGoWhereAHeaderComes(backend: Backend) throws {
    try backend.withSubject { subject in
      let twin = MemoryStorage()
      func commit(_ mutations: [Mutation]) throws {
        try subject.storage.commit(mutations)
        try twin.commit(mutations)
      }
      try commit([.put(.store(store, .policy), Policy.standard.row)])
      for sequence in UInt64(1)...4 {
        try commit(
          [header(sequence)]
            + (0..<4).map {
              entry(sequence, $0, [UInt8(sequence), UInt8($0)])
            })
      }
      try commit([
        gone(1, 0), gone(1, 2),
        gone(2, 3),
        header(5, 5),
        entry(5, 0, [5, 0]),
        gone(2, 0), gone(3, 1),
        entry(5, 1, [5, 1]),
        gone(5, 0), gone(4, 0),
        gone(4, 1), .remove(.store(store, .changeSet(reference(3)))), gone(3, 0), gone(3, 2),
        gone(3, 3),
        header(6, 6),
        entry(6, 2, [6, 2]),
        // A header whose entry comes only after others have gone, and one without any.
        header(7, 7),
        gone(1, 3), gone(4, 3),
        entry(7, 1, [7, 1]),
        header(8, 8),
        gone(2, 2),
      ])
      #expect(try subject.storage.load() == twin.load())
      #expect(try subject.reload() == twin.load())
      let left = try subject.storage.load().stores[store]?.changeSets.mapValues(\.entries)
      #expect(left?[reference(1)] == [1: [1, 1]])
      #expect(left?[reference(2)] == [1: [2, 1]])
      #expect(left?[reference(3)] == nil)
      #expect(left?[reference(4)] == [2: [4, 2]])
      #expect(left?[reference(5)] == [1: [5, 1]])
      #expect(left?[reference(6)] == [2: [6, 2]])
      #expect(left?[reference(7)] == [1: [7, 1]] && left?[reference(8)] == [:])
    }
  }

  @Test(arguments: Backend.allCases)
  func aFailedCommitChangesNothingAndTheNextOneWorks(backend: Backend) throws {
    try backend.withSubject { subject in
      let big = [UInt8](repeating: 1, count: 100_000)
      try subject.storage.commit([
        .put(.store(store, .policy), Policy.standard.row),
        header(1),
      ])
      let before = try subject.storage.load()
      let mutations: [Mutation] = [
        .put(.clock, HybridTime(rawValue: 9).row), .remove(.store(store, .changeSet(reference(1)))),
        .put(
          .store(store, .changeSet(reference(2))), StoredChangeSet(header: big, signature: [1]).row),
        .put(.store(store, .draft(1)), big),
      ]
      try subject.setFailing(true)
      let error = #expect(throws: StorageError.self) { try subject.storage.commit(mutations) }
      #expect(error?.code == .diskFull)
      #expect(try subject.storage.load() == before)
      try subject.setFailing(false)
      try subject.storage.commit(mutations)
      var after = before
      for mutation in mutations { after.apply(mutation) }
      #expect(try subject.reload() == after)
    }
  }

  @Test(arguments: 0..<12)
  func randomMutationsLeaveBothAlike(run: Int) throws {
    let seed = UInt64(run) &* 7_919 &+ 1
    try Backend.sqlite.withSubject { subject in
      let twin = MemoryStorage()
      var source = MutationSource(seed: seed)
      try subject.storage.commit(
        MutationSource.stores.map { .put(.store($0, .policy), Policy.standard.row) })
      try twin.commit(
        MutationSource.stores.map { .put(.store($0, .policy), Policy.standard.row) })
      for step in 0..<40 {
        let mutations = source.mutations(source.number(30))
        try subject.storage.commit(mutations)
        try twin.commit(mutations)
        if step % 10 == 9 {
          #expect(try subject.storage.load() == twin.load(), "seed \(seed), step \(step)")
        }
      }
      #expect(try subject.reload() == twin.load(), "seed \(seed)")
    }
  }
}
