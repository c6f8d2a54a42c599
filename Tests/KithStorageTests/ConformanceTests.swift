import Foundation
import KithCore
import KithCrypto
import Testing

@testable import KithStorage

@Suite struct ConformanceTests {
  let store = MutationSource.stores[0]
  let device = DeviceID { $0.copyBytes(from: [UInt8](repeating: 7, count: 32)) }
  let incarnation = Incarnation(rawValue: .max)

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
        .setClock(HybridTime(rawValue: .max)), .setIncarnation(incarnation),
        .setKeepsHistory(false),
        .putRecord(digest, [1, 2]), .setAddresses(device, ["b:1", "a:2"]),
        .putStore(store, policy),
        .putHeader(store, reference(1), header: [3], signature: [4]),
        .putEntry(store, reference(1), index: .max, box: []),
        .putEntry(store, reference(1), index: 0, box: [5]),
        .putHeader(store, reference(1 << 53), header: [6], signature: [7]),
        .setVector(store, device, incarnation, .max), .setOpened(store),
        .setAdopted(store, HybridTime(rawValue: .max - 1)),
        .setLost(store, device, incarnation, 5), .dropDamaged,
        .setLoss(store, StoreLoss(changeSets: 2, entries: 9, isAccepted: true)),
        .setHorizon(store, horizon),
        .putDraft(store, .max, [8]), .putRefusal(store, 1, []),
        .putPastValue(store, .max, [9]),
      ])
      var expected = Snapshot()
      expected.clock = HybridTime(rawValue: .max)
      expected.incarnation = incarnation
      expected.keepsHistory = false
      expected.records = [digest: [1, 2]]
      expected.addresses = [device: ["b:1", "a:2"]]
      var stored = StoredStore(policy: policy)
      stored.vector = [device: [incarnation: .max]]
      stored.isOpened = true
      stored.adopted = HybridTime(rawValue: .max - 1)
      stored.lost = [device: [incarnation: 5]]
      stored.loss = StoreLoss(changeSets: 2, entries: 9, isAccepted: true)
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
        .putStore(store, .standard), .setKeepsHistory(true),
        .removeLost(store, device, incarnation), .setLoss(store, nil),
        .setHorizon(store, Horizon()),
      ])
      let reloaded = try subject.reload()
      #expect(reloaded.keepsHistory)
      let changed = reloaded.stores[store]
      #expect(changed?.isOpened == true && changed?.policy == .standard && changed?.lost == [:])
      #expect(changed?.horizon == Horizon())
      #expect(changed?.loss == nil && changed?.adopted == HybridTime(rawValue: .max - 1))
    }
  }

  @Test(arguments: Backend.allCases)
  func removalsTakeWhatTheyName(backend: Backend) throws {
    try backend.withSubject { subject in
      try subject.storage.commit([
        .putStore(store, .standard),
        .putHeader(store, reference(1), header: [1], signature: [1]),
        .putEntry(store, reference(1), index: 0, box: [1]),
        .putEntry(store, reference(1), index: 1, box: [2]),
        .putHeader(store, reference(2), header: [2], signature: [2]),
        .putEntry(store, reference(2), index: 0, box: [3]),
        .putEntry(store, reference(2), index: 1, box: [4]),
        .setVector(store, device, incarnation, 2), .setAddresses(device, ["a:1"]),
        .putRecord(Blake2b.digest256([1]), [1]), .putRecord(Blake2b.digest256([2]), [2]),
        .putDraft(store, 1, [1]), .putRefusal(store, 1, [1]), .putPastValue(store, 1, [1]),
      ])
      try subject.storage.commit([
        .removeChangeSet(store, reference(1)), .removeEntry(store, reference(2), index: 0),
        .removeEntry(store, reference(2), index: 1), .removeVector(store, device, incarnation),
        .setAddresses(device, []), .removeDraft(store, 1), .removeRefusal(store, 1),
        .removePastValue(store, 1),
        .removeRecord(Blake2b.digest256([1])),
        // A change set that comes back has none of its old entries.
        .putHeader(store, reference(1), header: [9], signature: [9]),
        .putStore(store, Policy(keys: 1)),
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
  func orderInsideACommitCounts(backend: Backend) throws {
    try backend.withSubject { subject in
      try subject.storage.commit([
        .putDraft(store, 1, [1]),  // The store was not begun: nothing.
        .putStore(store, .standard),
        .putDraft(store, 2, [1]), .removeDraft(store, 2), .putDraft(store, 3, [1]),
        .putDraft(store, 3, [2]), .setClock(HybridTime(rawValue: 5)),
        .setClock(HybridTime(rawValue: 3)),
        .putEntry(store, reference(1), index: 0, box: [1]),  // Before its header: nothing.
        .putHeader(store, reference(1), header: [1], signature: [1]),
        .putHeader(store, reference(2), header: [1], signature: [1]),
        .removeChangeSet(store, reference(2)),
        .putEntry(store, reference(2), index: 0, box: [1]),
      ])
      let snapshot = try subject.reload()
      #expect(snapshot.stores[store]?.drafts == [3: [2]])
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
      try commit([.putStore(store, .standard)])
      for sequence in UInt64(1)...4 {
        try commit(
          [.putHeader(store, reference(sequence), header: [1], signature: [1])]
            + (0..<4).map {
              .putEntry(store, reference(sequence), index: $0, box: [UInt8(sequence), UInt8($0)])
            })
      }
      try commit([
        .removeEntry(store, reference(1), index: 0), .removeEntry(store, reference(1), index: 2),
        .removeEntry(store, reference(2), index: 3),
        .putHeader(store, reference(5), header: [5], signature: [5]),
        .putEntry(store, reference(5), index: 0, box: [5, 0]),
        .removeEntry(store, reference(2), index: 0), .removeEntry(store, reference(3), index: 1),
        .putEntry(store, reference(5), index: 1, box: [5, 1]),
        .removeEntry(store, reference(5), index: 0), .removeEntry(store, reference(4), index: 0),
        .removeEntry(store, reference(4), index: 1), .removeChangeSet(store, reference(3)),
        .putHeader(store, reference(6), header: [6], signature: [6]),
        .putEntry(store, reference(6), index: 2, box: [6, 2]),
        // A header whose entry comes only after others have gone, and one without any.
        .putHeader(store, reference(7), header: [7], signature: [7]),
        .removeEntry(store, reference(1), index: 3), .removeEntry(store, reference(4), index: 3),
        .putEntry(store, reference(7), index: 1, box: [7, 1]),
        .putHeader(store, reference(8), header: [8], signature: [8]),
        .removeEntry(store, reference(2), index: 2),
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
        .putStore(store, .standard),
        .putHeader(store, reference(1), header: [1], signature: [1]),
      ])
      let before = try subject.storage.load()
      let mutations: [Mutation] = [
        .setClock(HybridTime(rawValue: 9)), .removeChangeSet(store, reference(1)),
        .putHeader(store, reference(2), header: big, signature: [1]), .putDraft(store, 1, big),
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
        MutationSource.stores.prefix(2).map { .putStore($0, .standard) })
      try twin.commit(
        MutationSource.stores.prefix(2).map { .putStore($0, .standard) })
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
