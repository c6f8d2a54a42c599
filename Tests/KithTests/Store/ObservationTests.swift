import KithCore
import KithTestSupport
import Observation
import Synchronization
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
    var tuples = store.values(for: .count, .name).makeAsyncIterator()
    #expect(try #require(await tuples.next()).0 == 0)
    for number in 1...500 { try store.set(number, for: .count) }
    #expect(try #require(await tuples.next()).0 == 500)
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

/// `withObservationTracking` follows what its closure reads of a store, whoever writes it.
@Suite(.timeLimit(.minutes(5)))
struct ObservedStoreTests {
  /// Reads what the closure reads, and counts how often it is called: at most once.
  private func follow(_ body: () -> Void) -> Counter {
    let counter = Counter()
    withObservationTracking(body) { counter.count.add(1, ordering: .relaxed) }
    return counter
  }

  final class Counter: Sendable {
    let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
  }

  /// The change of a key by another device.
  private func change(
    _ store: KeyValueStore, _ key: String, to value: PropertyListValue?
  ) throws {
    let change = ViewChange(
      store: store.identifier, reason: .externalChange,
      changes: [(KeyValueStore.Key(key), try value.map { try EncodedValue($0) })])
    for run in store.view.apply([change]) { run() }
  }

  @Test func `an own write calls the observers of its key alone, before it returns`() throws {
    let store = try EngineFixture().store
    let theme = follow { _ = store[.theme] }
    let count = follow { _ = store[.count] }
    try store.set(3, for: .count)
    #expect(theme.value == 0 && count.value == 1)
    let again = follow { _ = store[.count] }
    try store.set(.dark, for: .theme)
    #expect(theme.value == 1 && again.value == 0)
  }

  @Test func `others' changes call the observers too, and the new value is shown then`()
    async throws
  {
    let store = try EngineFixture().store
    let seen = Mutex<Int?>(nil)
    withObservationTracking {
      _ = store[.count]
    } onChange: {
      let value = store[.count]
      seen.withLock { $0 = value }
    }
    let theme = follow { _ = store[.theme] }
    try change(store, "count", to: 8)
    try await eventually { seen.withLock { $0 } == 8 }
    #expect(theme.value == 0)
  }

  /// The program's threads may block in an observer: the engine and the network must not.
  @Test func `observers of others' changes are called on a thread of their own`() async throws {
    let store = try EngineFixture().store
    let isOver = Mutex(false)
    let called = follow { _ = store[.count] }
    withObservationTracking {
      _ = store[.count]
    } onChange: {
      isOver.withLock { $0 = true }
    }
    try isOver.withLock { _ in try change(store, "count", to: 1) }
    try await eventually { called.value == 1 && isOver.withLock { $0 } }
  }

  @Test func `a transaction calls each of its keys' observers once, and a refused one none`()
    async throws
  {
    let store = try EngineFixture().store
    let (count, theme) = (follow { _ = store[.count] }, follow { _ = store[.theme] })
    try await store.commit {
      $0[.count] += 1
      $0[.theme] = .dark
    }
    #expect(count.value == 1 && theme.value == 1)
    let again = follow { _ = store[.theme] }
    let large = String(repeating: "x", count: 2_000_000)
    await #expect(throws: KithError.self) {
      try await store.commit {
        $0[.theme] = .system
        $0.set(.string(large), forKey: "large")
      }
    }
    #expect(again.value == 0)
  }

  @Test func `all ways of reading are observed`() throws {
    let store = try EngineFixture().store
    try store.set(1, for: .count)
    @Stored(.count, in: store) var stored
    let readers = [
      follow { _ = store.value(forKey: "count") }, follow { _ = store.isDefault(.count) },
      follow { _ = store.isUnreadable(.count) }, follow { _ = stored },
      follow { _ = $stored.isDefault }, follow { _ = store.keys },
      follow { _ = store.dictionary },
      follow { _ = store.snapshot.values(prefix: "co", as: Int.self) },
    ]
    let theme = follow { _ = store.isDefault(.theme) }
    try store.reset(.count)
    #expect(readers.map(\.value) == readers.map { _ in 1 })
    #expect(theme.value == 0)
  }

  @Test func `a change of the account calls all observers`() async throws {
    let store = try EngineFixture().store
    try store.set(1, for: .count)
    let (count, theme) = (follow { _ = store[.count] }, follow { _ = store[.theme] })
    store.view.showNothing(because: .accountChange)
    try await eventually { count.value == 1 && theme.value == 1 }
  }

  @Test func `a refused assignment and its end are observed`() throws {
    let store = try EngineFixture().store
    @Stored(StoreKey("note", default: ""), in: store) var note
    let reader = follow { _ = note }
    let error = follow { _ = $note.error }
    note = String(repeating: "x", count: 2_000_000)
    #expect(error.value == 1 && reader.value == 0)
    #expect($note.error?.code == .valueTooLarge)
    let healed = follow { _ = $note.error }
    note = "short"
    #expect(healed.value == 1 && $note.error == nil)
  }
}
