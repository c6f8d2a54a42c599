import KithCrypto
import Testing

@testable import KithCore

struct SnapshotTests {
  @Test func `another device gets all of a store, but neither history nor incarnation`() throws {
    let device = deviceKeys(1).id
    let name = try #require(StoreIdentifier("com.example.test"))
    var store = StoredStore(policy: .maximum)
    store.adopted = HybridTime(milliseconds: 3)
    store.isUsedHere = true
    let chain = ChainID(device: device, incarnation: Incarnation(rawValue: 1))
    store.vector = [chain: 4]
    store.lost = [chain: 5]
    store.loss = StoreLoss(rows: 2, isAccepted: true)
    let reference = ChangeSetReference(
      device: device, incarnation: Incarnation(rawValue: 1), sequence: 4,
      digest: Blake2b.digest256([1]))
    store.changeSets = [reference: StoredChangeSet(header: [1], signature: [2], entries: [0: [3]])]
    store.drafts = [7: [4]]
    store.refusals = [8: [5]]
    store.pastValues = [9: [6]]
    var old = Snapshot()
    old.clock = HybridTime(milliseconds: 9)
    old.incarnation = Incarnation(rawValue: 6)
    old.keepsHistory = false
    old.addresses = [device: ["192.0.2.1:4114"]]
    old.stores = [name: store]
    var new = Snapshot()
    for mutation in old.forAnotherDevice { new.apply(mutation) }
    old.incarnation = nil
    old.stores[name]?.pastValues = [:]
    #expect(new == old)
  }

  @Test func `a change set's row is the message that SwiftProtobuf writes`() {
    for count in [0, 1, 127, 128, 16_383, 16_384] {
      let bytes = [UInt8](repeating: 7, count: count)
      for changeSet in [
        StoredChangeSet(header: bytes, signature: [1]),
        StoredChangeSet(header: [1], signature: bytes),
      ] {
        #expect((changeSet.row == changeSet.wire.encodedBytes()) as Bool, "\(count) bytes")
      }
    }
  }
}
