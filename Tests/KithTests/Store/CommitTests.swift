import KithCore
import KithTestSupport
import Synchronization
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

extension KeyValueStore {
  /// Tasks add 1 to a count, each so many times.
  func addUp(tasks: Int, times: Int) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<tasks {
        group.addTask { for _ in 0..<times { try await self.commit { $0[.count] += 1 } } }
      }
      try await group.waitForAll()
    }
  }

  /// Tasks spend 60 of 100 credits in each round. Returns in how many rounds more than one did.
  func sell(rounds: Int, tasks: Int = 4) async throws -> Int {
    struct TooFew: Error {}
    var soldTwice = 0
    for _ in 0..<rounds {
      try await commit { $0[.count] = 100 }
      let sold = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<tasks {
          group.addTask {
            do {
              try await self.commit {
                guard $0[.count] >= 60 else { throw TooFew() }
                $0[.count] -= 60
              }
              return true
            } catch {
              #expect(error is TooFew)
              return false
            }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      soldTwice += sold == 1 ? 0 : 1
      #expect(self[.count] == 40)
    }
    return soldTwice
  }
}

/// A transaction is accepted only if what it read still holds; otherwise it begins again.
@Suite("Transactions that meet", .timeLimit(.minutes(5)))
struct CommitConflictTests {
  @Test func `no update is lost on disk`() async throws {
    let directory = try TestDirectory()
    let accounts = try AccountsTests.open(directory.child("a"))
    let store = try accounts.store("com.example.test")
    try await AccountsTests.serving(accounts) {
      try await store.addUp(tasks: 8, times: 250)
      #expect(store[.count] == 2_000)
      try await store.addUp(tasks: 100, times: 5)
      #expect(store[.count] == 2_500)
      #expect(try await store.sell(rounds: 200) == 0)
    }
    try accounts.close()
  }

  @Test func `no update is lost among programs that share a node`() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await served.run {
      let (one, other) = (try await served.attach(), try await served.attach())
      try await one.store.addUp(tasks: 8, times: 250)
      #expect(one.store[.count] == 2_000)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for store in [owner, one.store, other.store] {
          group.addTask { try await store.addUp(tasks: 8, times: 25) }
        }
        // More than the requests that a node takes of one program at a time.
        group.addTask { try await one.store.addUp(tasks: 300, times: 1) }
        try await group.waitForAll()
      }
      #expect(owner[.count] == 2_900)
      #expect(try await other.store.sell(rounds: 200) == 0)
      try await one.close()
      try await other.close()
    }
    try served.node.close()
  }

  @Test func `a read of each kind is checked, a write alone is not`() async throws {
    let store = try EngineFixture().store
    typealias Body = (inout KeyValueStore.Transaction) throws(KithError) -> Void
    let bodies: [(name: String, runs: Int, meanwhile: [PropertyListValue?], read: Body)] = [
      ("a value", 2, [1, 2], { _ = $0.value(forKey: "k") }),
      ("a value that is removed", 2, [1, nil], { _ = $0.value(forKey: "k") }),
      ("a missing key that is set", 2, [nil, 1], { _ = $0.value(forKey: "k") }),
      ("a prefix, when a key comes", 2, [nil, 1], { _ = $0.values(prefix: "k") }),
      ("a prefix, when a key goes", 2, [1, nil], { _ = $0.values(prefix: "k") }),
      ("a prefix, when a value changes", 2, [1, 2], { _ = $0.values(prefix: "") }),
      ("another prefix", 1, [1, 2], { _ = $0.values(prefix: "x") }),
      ("another key", 1, [1, 2], { _ = $0.value(forKey: "x") }),
      ("the same value again", 1, [1, 1], { _ = $0.value(forKey: "k") }),
      ("nothing", 1, [1, 2], { _ in }),
      (
        "only what it wrote", 1, [1, 2],
        {
          $0.set(3, forKey: "k"); _ = $0.value(forKey: "k")
        }
      ),
    ]
    for body in bodies {
      try store.set(body.meanwhile[0], forKey: "k")
      var runs = 0
      try await store.commit { transaction throws(KithError) in
        runs += 1
        try body.read(&transaction)
        if runs == 1 { try store.set(body.meanwhile[1], forKey: "k") }
        transaction.set(.integer(Int64(runs)), forKey: "runs")
      }
      #expect(runs == body.runs, "\(body.name)")
      #expect(store.value(forKey: "runs") == .integer(Int64(body.runs)), "\(body.name)")
    }
  }

  @Test func `a body that only reads runs once, and one that always meets ends with an error`()
    async throws
  {
    let store = try EngineFixture().store
    var runs = 0
    try await store.commit {
      runs += 1
      _ = $0[.count]
      try? store.set(7, for: .count)
    }
    #expect(runs == 1)
    runs = 0
    do throws(KithError) {
      try await store.commit { transaction throws(KithError) in
        runs += 1
        transaction[.count] += 1
        try store.set(runs * 10, for: .count)
      }
      Issue.record("it was accepted")
    } catch {
      #expect(error.code == .conflict)
    }
    #expect(runs == Limits.commitTries)
    #expect(store[.count] == runs * 10)
    // The next one finds the way free.
    try await store.commit { $0[.count] = 1 }
    try await store.addUp(tasks: 2, times: 2)
    #expect(store[.count] == 5)
  }

  @Test func `a body that throws when it runs again writes nothing`() async throws {
    struct Stop: Error {}
    let store = try EngineFixture().store
    var runs = 0
    await #expect(throws: Stop.self) {
      try await store.commit {
        runs += 1
        $0.set(true, forKey: "written")
        if $0[.count] > 0 { throw Stop() }
        try store.set(1, for: .count)
      }
    }
    #expect(runs == 2)
    #expect(store.dictionary == ["count": 1])
  }

  @Test func `a value is exchanged or removed only if it is as expected`() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await served.run {
      let program = try await served.attach()
      for store in [owner, program.store] {
        try await store.commit {
          try $0.expect(nil, forKey: "owner")
          $0.set("laptop", forKey: "owner")
        }
        for wrong in [nil, "desktop"] as [PropertyListValue?] {
          let error = await #expect(throws: KithError.self) {
            try await store.commit {
              try $0.expect(wrong, forKey: "owner")
              $0.removeValue(forKey: "owner")
            }
          }
          #expect(error?.code == .unexpectedValue && error?.key == "owner")
        }
        #expect(store.value(forKey: "owner") == "laptop")
        try await store.commit { transaction throws(KithError) in
          try transaction.expect("laptop", forKey: "owner")
          transaction.removeValue(forKey: "owner")
          try transaction.expect(0, for: .count)
        }
        #expect(store.dictionary.isEmpty)
        try await eventually { owner.dictionary.isEmpty && program.store.dictionary.isEmpty }
      }
      try await program.close()
    }
    try served.node.close()
  }
}
