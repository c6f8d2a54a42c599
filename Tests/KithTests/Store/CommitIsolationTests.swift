import Testing

@testable import Kith

/// A transaction runs in its caller's isolation: code that does not compile here does not compile
/// in programs.
@Suite(.timeLimit(.minutes(5)))
struct CommitIsolationTests {
  struct TooMany: Error, Equatable { var count: Int }

  /// May be used on one actor only.
  final class Document {
    var revisions = 0
  }

  @MainActor final class Model {
    let store: KeyValueStore
    let document = Document()
    var saved = 0

    init(_ store: KeyValueStore) { self.store = store }

    func save() async throws(KithError) -> Document {
      try await store.commit {
        $0[.count] += 1
        saved = $0[.count]
        document.revisions += 1
        return document
      }
    }

    func saveUnlessMany() async throws {
      try await store.commit {
        $0[.count] += 1
        guard $0[.count] < 3 else { throw TooMany(count: $0[.count]) }
        saved = $0[.count]
      }
    }
  }

  actor Counter {
    let store: KeyValueStore
    var saved = 0

    init(_ store: KeyValueStore) { self.store = store }

    func save() async throws(KithError) {
      try await store.commit { $0[.count] = saved + 1 }
      saved += 1
    }

    func fail() async throws {
      try await store.commit { _ in throw TooMany(count: saved) }
    }
  }

  @Test @MainActor func `from the main actor, with its state`() async throws {
    let model = Model(try EngineFixture().store)
    let document = try await model.save()
    #expect(document === model.document)
    #expect(document.revisions == 1)
    #expect(model.saved == 1)
    #expect(model.store[.count] == 1)
  }

  @Test @MainActor func `an error of the program's own comes through, and undoes all`() async throws
  {
    let model = Model(try EngineFixture().store)
    try await model.saveUnlessMany()
    try await model.saveUnlessMany()
    await #expect(throws: TooMany(count: 3)) { try await model.saveUnlessMany() }
    #expect(model.store[.count] == 2)
    #expect(model.saved == 2)
  }

  @Test func `from an actor`() async throws {
    let counter = Counter(try EngineFixture().store)
    try await counter.save()
    try await counter.save()
    #expect(counter.store[.count] == 2)
    await #expect(throws: TooMany(count: 2)) { try await counter.fail() }
  }

  @Test func `the store's refusal is a KithError either way`() async throws {
    let store = try EngineFixture().store
    do throws(KithError) {
      try await store.commit { $0.set(1, forKey: "") }
      Issue.record("an empty key is refused")
    } catch {
      #expect(error.code == .invalidKey)
    }
    func mayFail() throws {}
    let error = await #expect(throws: KithError.self) {
      try await store.commit {
        try mayFail()
        $0.set(1, forKey: "")
      }
    }
    #expect(error?.code == .invalidKey)
  }
}
