import Testing

@testable import Kith

extension StoreKey where Value == Theme {
  static var theme: Self { .init("theme", default: .system) }
}

extension StoreKey where Value == Int {
  static var count: Self { .init("count", default: 0) }
}

@Suite(.timeLimit(.minutes(5)))
struct TypedStoreTests {
  @Test func aDefaultIsReturnedAndNeverWritten() async throws {
    let store = try EngineFixture().store
    #expect(store[.theme] == .system)
    #expect(store.keys.isEmpty)
    try store.set(.dark, for: .theme)
    #expect(store[.theme] == .dark)
    try store.set("pink", forKey: "theme")
    #expect(store[.theme] == .system)
    try store.reset(.theme)
    #expect(store.keys.isEmpty)
  }

  @Test func aTransactionSeesItsOwnWritesAndFailsWhole() async throws {
    let store = try EngineFixture().store
    let seen = try await store.commit { transaction throws(KithError) in
      transaction[.count] += 1
      transaction[.count] += 1
      return transaction[.count]
    }
    #expect(seen == 2)
    await #expect(throws: KithError.self) {
      try await store.commit {
        $0[.count] = 7
        $0.set(1, forKey: "")
      }
    }
    #expect(store[.count] == 2)
  }

  @Test func valuesComeFromNowOnUntilTheEnd() async throws {
    let fixture = try EngineFixture()
    let store = fixture.store
    let values = store.values(for: .count)
    for number in 1...200 { try store.set(number, for: .count) }
    var seen: [Int] = []
    for await value in values {
      seen.append(value)
      if value == 200 { break }
    }
    #expect(seen.first == 0)
    #expect(seen == seen.sorted())
    try fixture.engine.close()
    var rest = store.values(for: .count).makeAsyncIterator()
    #expect(await rest.next() == 200)
    #expect(await rest.next() == nil)
  }
}
