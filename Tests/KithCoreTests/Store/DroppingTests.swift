import KithCrypto
import Testing

@testable import KithCore

@Suite struct DroppingTests {
  /// Dropping entries whole counts them out: otherwise what is left seems not to fit.
  @Test func `what is dropped is not counted any more`() throws {
    let world = try TestWorld(devices: 1, seed: 330)
    let chain = try world.chain(of: 0)
    func reference(_ sequence: UInt64) -> ChangeSetReference {
      ChangeSetReference(
        device: chain.device, incarnation: chain.incarnation, sequence: sequence,
        digest: Blake2b.digest256([UInt8(sequence)]))
    }
    func kept(_ key: String, _ value: PropertyListValue, _ sequence: UInt64) throws -> KeptEntry {
      let entry = try world.entry(key, value, on: 0)
      return KeptEntry(
        entry: entry, digest: Blake2b.digest256(entry.plaintext()),
        home: EntryHome(changeSet: reference(sequence), index: 0))
    }
    var state = StoreState(policy: Policy(totalBytes: 1_000, keys: 8, keyBytes: 2, valueBytes: 900))
    let entries = [
      try kept("a", blob(400), 1), try kept("b", blob(500), 2),
      // Never shown: its key is too long.
      try kept("long", 1, 3), try kept("c", blob(300), 4),
    ]
    for entry in entries { _ = state.merge(entry) }
    _ = state.refresh(state.slots.keys)
    #expect(state.shown.count < 3, "not all fits")
    let dropped = state.drop(entriesOf: [reference(2), reference(3)])
    #expect(Set(dropped.map(\.entry.key)) == ["b", "long"])
    _ = state.refresh(dropped.map(\.entry.key))
    let left = entries.filter { ["a", "c"].contains($0.entry.key) }
    #expect(state.newestKeys == 2)
    #expect(state.newestBytes == left.reduce(0) { $0 + ($1.entry.value?.size ?? 0) })
    #expect(Set(state.shown.keys) == ["a", "c"])
    // So many as fit beside them are shown at once, without another look at all.
    _ = state.merge(try kept("d", blob(250), 5))
    _ = state.refresh(["d"])
    #expect(state.hiddenKeys.isEmpty && state.shown.count == 3)
  }
}
