import KithStorage
import Testing

@testable import Kith
@testable import KithCore

/// Which rows of the local stores an account's adoption removes.
struct HandingOverTests {
  @Test func `a local write that cannot be read stays, and is told of as damaged`() throws {
    let fixture = try EngineFixture()
    let store = try #require(StoreIdentifier("com.example.test"))
    let draft = Draft(
      clock: HybridTime(milliseconds: 7),
      operation: Operation(key: "k", value: try EncodedValue("v")))
    var local = Snapshot()
    local.stores[store] = StoredStore()
    local.stores[store]?.drafts = [1: draft.encoded(), 2: [0xff], 3: draft.encoded() + [0xff]]
    let storage = MemoryStorage(local)
    let superseded = try local.handOver(from: storage) { fixture.engine }
    #expect(superseded == [store: []])
    #expect(fixture.store.value(forKey: "k") == "v")
    let left = try storage.load()
    #expect(left.stores[store]?.drafts == [2: [0xff], 3: draft.encoded() + [0xff]])
    // The next adoption has nothing to take, and leaves them, too.
    _ = try left.handOver(from: storage) { fixture.engine }
    #expect(try storage.load() == left)
    #expect(fixture.engine.read { $0.adoptingStores }.isEmpty)
  }
}
