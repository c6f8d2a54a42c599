import Testing

@testable import Kith

extension StoreKey where Value == String {
  fileprivate static var name: Self { .init("name", default: "none") }
}

/// Values of several keys, and the end of sequences.
@Suite(.timeLimit(.minutes(5)))
struct ObservationTests {
  @Test func aTransactionOverSeveralKeysIsOneElement() async throws {
    let store = try EngineFixture().store
    var tuples = store.values(for: .theme, .count, .name).makeAsyncIterator()
    var seen = try #require(await tuples.next())
    #expect(seen == (.system, 0, "none"))
    try await store.commit {
      $0[.theme] = .dark
      $0[.name] = "a"
    }
    seen = try #require(await tuples.next())
    #expect(seen == (.dark, 0, "a"))
    // Another key, and the same value again, are no news.
    try store.set(1, forKey: "other")
    try store.set("pink", forKey: "count")
    try store.set(5, for: .count)
    seen = try #require(await tuples.next())
    #expect(seen == (.dark, 5, "a"))
    try store.reset(.theme)
    seen = try #require(await tuples.next())
    #expect(seen == (.system, 5, "a"))
  }

  @Test func `of many changes a slow consumer gets the last, and none before it`() async throws {
    let store = try EngineFixture().store
    let tuples = store.values(for: .count, .name)
    for number in 1...500 { try store.set(number, for: .count) }
    var last = 0
    var elements = 0
    for await (count, _) in tuples {
      #expect(count >= last)
      last = count
      elements += 1
      if count == 500 { break }
    }
    #expect(elements == 2, "the first, and the newest")
  }

  @Test func cancellingEndsEverySequence() async throws {
    let store = try EngineFixture().store
    let (elements, continuation) = AsyncStream<Void>.makeStream()
    let task = Task {
      await withTaskGroup(of: Void.self) { group in
        group.addTask { for await _ in store.values(for: .count) { continuation.yield() } }
        group.addTask { for await _ in store.values(for: .count, .name) { continuation.yield() } }
        group.addTask { for await _ in store.changes {} }
      }
    }
    // Both have begun, and wait for the next change.
    var begun = elements.makeAsyncIterator()
    for _ in 0..<2 { await begun.next() }
    task.cancel()
    await task.value
  }
}
