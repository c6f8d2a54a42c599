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
    let outcome = try local.handOver(from: storage) { fixture.engine }
    #expect(outcome.superseded == [store: []] && outcome.left.isEmpty)
    #expect(fixture.store.value(forKey: "k") == "v")
    let left = try storage.load()
    #expect(left.stores[store]?.drafts == [2: [0xff], 3: draft.encoded() + [0xff]])
    // The next adoption has nothing to take, and leaves them, too.
    _ = try left.handOver(from: storage) { fixture.engine }
    #expect(try storage.load() == left)
    #expect(fixture.engine.read { $0.adoptingStores }.isEmpty)
  }

  @Test func `a store that the account cannot take keeps no other from being taken`() throws {
    let fixture = try EngineFixture()
    let store = try #require(StoreIdentifier("com.example.test"))
    let excess = try #require(StoreIdentifier("com.example.excess"))
    for number in 1..<Limits.stores {
      let name = try #require(StoreIdentifier("com.example.store\(number)"))
      _ = try fixture.engine.open(name, policy: .standard)
    }
    let draft = Draft(
      clock: HybridTime(milliseconds: 7),
      operation: Operation(key: "k", value: try EncodedValue("v")))
    var local = Snapshot()
    for name in [excess, store] {
      local.stores[name] = StoredStore()
      local.stores[name]?.drafts = [1: draft.encoded()]
    }
    let storage = MemoryStorage(local)
    let outcome = try local.handOver(from: storage) { fixture.engine }
    #expect(outcome.superseded == [store: []])
    #expect(outcome.left.mapValues(\.code) == [excess: .tooManyStores])
    #expect(outcome.error?.message.contains(" to com.example.excess: ") == true)
    #expect(fixture.store.value(forKey: "k") == "v")
    let left = try storage.load().stores
    #expect(left[excess]?.drafts.count == 1 && left[store]?.drafts.isEmpty ?? true)
  }
}
