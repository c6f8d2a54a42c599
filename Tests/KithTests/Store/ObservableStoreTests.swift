import KithCore
import KithTestSupport
import Observation
import Synchronization
import Testing

@testable import Kith

/// Observers hear of every change of the keys that they read, of any writer.
@Suite(.timeLimit(.minutes(5)))
struct ObservableStoreTests {
  /// Reads what the closure reads, and counts what it hears of it: at most 1.
  private func follow(_ body: () -> Void) -> Counter {
    let counter = Counter()
    withObservationTracking(body) { counter.count.add(1, ordering: .relaxed) }
    return counter
  }

  final class Counter: Sendable {
    let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
  }

  private func running(
    _ observable: ObservableStore, _ body: @escaping @Sendable () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      // It tells first what changed before it ran.
      let begun = follow { _ = observable.value(forKey: "begun") }
      let isSet = observable.store.value(forKey: "begun") == true
      try observable.store.set(.bool(!isSet), forKey: "begun")
      group.addTask { await observable.run() }
      try await eventually { begun.value == 1 }
      try await body()
      group.cancelAll()
    }
  }

  @Test func ownWritesAreToldAtOnceAndOfTheirKeyAlone() throws {
    let observable = ObservableStore(try EngineFixture().store)
    let theme = follow { _ = observable[.theme] }
    let count = follow { _ = observable[.count] }
    observable[.count] = 3
    #expect(theme.value == 0)
    #expect(count.value == 1)
    #expect(observable[.count] == 3)
    observable[.theme] = .dark
    #expect(theme.value == 1)
  }

  @Test func whatOthersWriteIsToldWhileItRuns() async throws {
    let observable = ObservableStore(try EngineFixture().store)
    try await running(observable) {
      let theme = follow { _ = observable[.theme] }
      let count = follow { _ = observable[.count] }
      try observable.store.set(8, for: .count)
      try await eventually { count.value == 1 }
      #expect(theme.value == 0)
      #expect(observable[.count] == 8)
    }
  }

  @Test func anOwnWriteIsToldOnce() async throws {
    let observable = ObservableStore(try EngineFixture().store)
    try await running(observable) {
      observable[.count] = 1
      // A reader that reads after the write has seen it.
      let again = follow { _ = observable[.count] }
      // A later change has come through, so this one has, too.
      let theme = follow { _ = observable[.theme] }
      try observable.store.set(.dark, for: .theme)
      try await eventually { theme.value == 1 }
      #expect(again.value == 0)
      // The same value again, by way of another one, is news both times.
      try observable.store.set(2, for: .count)
      try await eventually { again.value == 1 }
      let third = follow { _ = observable[.count] }
      try observable.store.set(1, for: .count)
      try await eventually { third.value == 1 }
    }
  }

  /// A mutation that meets the registration of `Observations` can end it for ever.
  @Test func `the start tells nothing that did not change, or was told`() async throws {
    let observable = ObservableStore(try EngineFixture().store)
    observable[.count] = 1
    let theme = follow { _ = observable[.theme] }
    let count = follow { _ = observable[.count] }
    try await running(observable) {
      #expect(theme.value == 0)
      #expect(count.value == 0)
    }
  }

  @Test func `what changed while it did not run is told when it runs again`() async throws {
    let observable = ObservableStore(try EngineFixture().store)
    try await running(observable) {}
    let count = follow { _ = observable[.count] }
    try observable.store.set(1, for: .count)
    try await running(observable) { try await eventually { count.value == 1 } }
  }

  @Test func `each write is told once, whoever is first`() async throws {
    let observable = ObservableStore(try EngineFixture().store)
    try await running(observable) {
      for number in 1...200 {
        let count = follow { _ = observable[.count] }
        observable[.count] = number
        #expect(count.value == 1)
        let again = follow { _ = observable[.count] }
        // A later change has come through, so this one has, too.
        let mark = follow { _ = observable.value(forKey: "mark") }
        try observable.store.set(.integer(Int64(number)), forKey: "mark")
        try await eventually { mark.value == 1 }
        #expect(again.value == 0)
      }
    }
  }

  @Test func aRefusedAssignmentIsObserved() throws {
    let observable = ObservableStore(try EngineFixture().store)
    let key = StoreKey("note", default: "")
    let error = follow { _ = observable.error }
    let note = follow { _ = observable[key] }
    observable[key] = String(repeating: "x", count: 2_000_000)
    #expect(error.value == 1)
    #expect(note.value == 0)
    #expect(observable.error?.code == .valueTooLarge)
    let mended = follow { _ = observable.error }
    observable[key] = "short"
    #expect(mended.value == 1)
    #expect(observable.error == nil)
  }

  @Test func `a transaction tells each of its keys once, and a refused one its error`() async throws
  {
    let observable = ObservableStore(try EngineFixture().store)
    try await running(observable) {
      let count = follow { _ = observable[.count] }
      let theme = follow { _ = observable[.theme] }
      let other = follow { _ = observable.value(forKey: "other") }
      var tries = 0
      try await observable.commit {
        // Another writer changes what the first try read.
        if tries == 0 { try observable.store.set(1, for: .count) }
        tries += 1
        $0[.count] += 1
        $0[.theme] = .dark
      }
      #expect(tries == 2 && observable[.count] == 2)
      #expect(count.value == 1 && theme.value == 1)
      let again = follow { _ = observable[.theme] }
      try observable.store.set(1, forKey: "other")
      try await eventually { other.value == 1 }
      #expect(again.value == 0)
      let large = String(repeating: "x", count: 2_000_000)
      let error = follow { _ = observable.error }
      await #expect(throws: KithError.self) {
        try await observable.commit {
          $0[.theme] = .system
          $0.set(.string(large), forKey: "large")
        }
      }
      #expect(error.value == 1 && observable.error?.code == .valueTooLarge)
      await #expect(throws: CancellationError.self) {
        try await observable.commit { (transaction) throws in
          transaction[.theme] = .system
          throw CancellationError()
        }
      }
      // Both have left nothing under way: a write by another is told.
      #expect(again.value == 0 && observable[.theme] == .dark)
      try observable.store.set(.system, for: .theme)
      try await eventually { again.value == 1 }
    }
  }

  @Test func propertiesOnItAreObserved() throws {
    let observable = ObservableStore(try EngineFixture().store)
    @Stored(.theme, in: observable) var theme
    let reader = follow { _ = theme }
    theme = .dark
    #expect(reader.value == 1)
    #expect($theme.store === observable.store)
  }

  @Test func `all ways of reading are observed, and a reset is told`() throws {
    let observable = ObservableStore(try EngineFixture().store)
    try observable.store.set(1, for: .count)
    let value = follow { _ = observable.value(forKey: "count") }
    let isDefault = follow { _ = observable.isDefault(.count) }
    let prefix = follow { _ = observable.values(prefix: "co", as: Int.self) }
    let theme = follow { _ = observable.isDefault(.theme) }
    #expect(observable.values(prefix: "co", as: Int.self) == ["count": 1])
    try observable.reset(.count)
    #expect(observable.isDefault(.count))
    #expect([value, isDefault, prefix].map(\.value) == [1, 1, 1])
    #expect(theme.value == 0)
  }

  @Test func aJoinedChangeTellsEverybody() async throws {
    let observable = ObservableStore(try EngineFixture().store)
    try await running(observable) {
      let theme = follow { _ = observable[.theme] }
      // More than wait unjoined, of which nothing remains: the key is as it was.
      observable.store.joinManyChanges(of: "count")
      try await eventually { theme.value == 1 }
    }
  }
}

extension KeyValueStore {
  /// Has the view tell more changes than wait, all in one go.
  fileprivate func joinManyChanges(of key: String) {
    let changes = (0..<ChangeBuffer.limit * 2 + 2).map { number in
      ViewChange(
        store: identifier, reason: nil,
        changes: [(KeyValueStore.Key(key), number % 2 == 0 ? try? EncodedValue(1) : nil)])
    }
    for run in view.apply(changes) { run() }
  }
}
