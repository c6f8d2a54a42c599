import Kith
import Testing

@Suite(.timeLimit(.minutes(2)))
struct ReplicationTests {
  @Test func aSetOnOneNodeIsNotifiedOnAnother() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    try await running(first, second) {
      let one = try first.store("com.example.test")
      let other = try second.store("com.example.test")
      try await second.waitForFirstSync(timeout: .seconds(10))
      let changes = other.changes
      try one.set("dark", forKey: "theme")
      var iterator = changes.makeAsyncIterator()
      let change = try #require(await iterator.next())
      #expect(change.reason == .serverChange)
      #expect(change.items == [.init(key: "theme", old: nil, new: "dark")])
      #expect(other.value(forKey: "theme") == "dark")
      let report = try await one.synchronize(timeout: .seconds(10))
      #expect(report.complete == [second.device])
      #expect(report.isComplete)
    }
    try first.close()
    try second.close()
  }

  @Test func draftsOfANodeThatWasAloneArePublishedWhenItMeetsAPeer() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let one = try first.store("com.example.test")
    // Neither runs: durable, and kept for later.
    for number in 0..<20 { try await one.commit { $0.set(.integer(Int64(number)), forKey: "n") } }
    #expect(one.syncReport.hasUnpublishedWrites)
    try await running(first, second) {
      let other = try second.store("com.example.test")
      try await until { other.value(forKey: "n") == 19 }
      #expect(try await one.synchronize(timeout: .seconds(10)).isComplete)
    }
    try first.close()
    try second.close()
  }

  @Test func writesOfANewDeviceNeverEraseWhatOthersWrote() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let one = try first.store("com.example.test")
    try one.set("mine", forKey: "theme")
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let other = try second.store("com.example.test")
    try other.set("default", forKey: "theme")
    try other.set("extra", forKey: "added")
    #expect(second.status.isProvisional)
    let changes = other.changes
    try await running(first, second) {
      try await second.waitForFirstSync(timeout: .seconds(10))
      try await until { other.value(forKey: "theme") == "mine" }
      try await until { one.value(forKey: "added") == "extra" }
      #expect(one.value(forKey: "theme") == "mine")
      var iterator = changes.makeAsyncIterator()
      let change = try #require(await iterator.next())
      #expect(change.reason == .initialSyncChange)
      #expect(change.superseded == ["theme"])
    }
    try first.close()
    try second.close()
  }

  @Test func threeNodesShowTheSameAfterConflictingWrites() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let (second, third) = try await running(first) {
      (
        try await nodes.join("second", by: first), try await nodes.join("third", by: first)
      )
    }
    try await running(first, second, third) {
      let stores = try [first, second, third].map { try $0.store("com.example.test") }
      try await second.waitForFirstSync(timeout: .seconds(10))
      try await third.waitForFirstSync(timeout: .seconds(10))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, store) in stores.enumerated() {
          group.addTask {
            for round in 0..<30 {
              try await store.commit {
                $0.set(.string("\(index).\(round)"), forKey: "k\(round % 7)")
                $0.set(.string("\(index).\(round)"), forKey: "pair\(round % 7)")
              }
            }
          }
        }
        try await group.waitForAll()
      }
      try await until {
        stores[0].dictionary == stores[1].dictionary && stores[1].dictionary == stores[2].dictionary
          && stores[0].keys.count == 14
          && Set([first, second, third].map { $0.status.stores[0].digest }).count == 1
      }
      for key in 0..<7 {
        #expect(stores[0].value(forKey: "k\(key)") == stores[0].value(forKey: "pair\(key)"))
      }
    }
    for node in [first, second, third] { try node.close() }
  }

  @Test func whatDoesNotFitWhenPublishedIsRefusedAndKeptUntilTaken() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let policy = Policy(totalBytes: 100, keys: 2)
    let one = try first.store("com.example.small", policy: policy)
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let other = try second.store("com.example.small", policy: policy)
    try await running(first, second) {
      try await second.waitForFirstSync(timeout: .seconds(10))
    }
    // Both write while apart; there is room for one.
    try one.set("1", forKey: "a")
    try one.set("2", forKey: "b")
    try other.set("3", forKey: "c")
    try other.set("4", forKey: "d")
    #expect(throws: KithError.self) { try other.set("5", forKey: "e") }
    try await running(first, second) {
      try await until {
        one.dictionary == other.dictionary
          && one.refusals.count + other.refusals.count == 2
      }
      #expect(one.keys.count == 2)
    }
    let refused = one.takeRefusals() + other.takeRefusals()
    #expect(refused.count == 2)
    #expect(refused.allSatisfy { $0.reason == .quota })
    #expect(one.refusals.isEmpty && other.refusals.isEmpty)
    try first.close()
    try second.close()
  }
}
