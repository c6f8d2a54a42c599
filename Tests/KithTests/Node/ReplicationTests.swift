import Foundation
import KithTestSupport
import Testing

@testable import Kith

@Suite(.timeLimit(.minutes(5)))
struct ReplicationTests {
  @Test func aSetOnOneNodeIsNotifiedOnAnother() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    try await running(first, second) {
      let one = try first.store("com.example.test")
      let other = try second.store("com.example.test")
      try await second.meetsPeer()
      let changes = other.changes
      try one.set("dark", forKey: "theme")
      var iterator = changes.makeAsyncIterator()
      let change = try #require(await iterator.next())
      #expect(change.reason == .externalChange)
      #expect(change.items == [.init(key: "theme", old: nil, new: "dark")])
      #expect(other.value(forKey: "theme") == "dark")
      let report = try await one.waitUntilSynced(timeout: .seconds(10))
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
    #expect(try one.syncReport.hasUnpublishedWrites)
    try await running(first, second) {
      let other = try second.store("com.example.test")
      try await eventually { other.value(forKey: "n") == 19 }
      #expect(try await one.waitUntilSynced(timeout: .seconds(10)).isComplete)
    }
    try first.close()
    try second.close()
  }

  @Test func `a wait for so many devices ends when they have it, or cannot be reached by waiting`()
    async throws
  {
    let nodes = try await Nodes()
    let first = nodes.first
    let (second, third) = try await running(first) {
      (try await nodes.join("second", by: first), try await nodes.join("third", by: first))
    }
    // The third one stays off.
    let elapsed = try await running(first, second) {
      let one = try first.store("com.example.test")
      try await second.meetsPeer()
      try one.set("dark", forKey: "theme")
      return try await ContinuousClock().measure {
        let report = try await one.waitUntilSynced(timeout: .seconds(60), devices: 1)
        #expect(report.complete == [second.device] && report.incomplete == [third.device])
        // By another program, too.
        let call = NodeCall.waitUntilSynced(store: "com.example.test", seconds: 60, devices: 1)
        _ = try await first.perform(call)
        _ = try await one.waitUntilSynced(timeout: .seconds(60), devices: 3)
      }
    }
    #expect(elapsed < .seconds(30))
    for node in [first, second, third] { try node.close() }
  }

  @Test func keysThatOnlyUnicodeCallsEqualStayApart() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    #expect(composed == decomposed)
    try await running(first, second) {
      let one = try first.store("com.example.test")
      let other = try second.store("com.example.test")
      try await one.commit {
        $0.set("composed", forKey: composed)
        $0.set("decomposed", forKey: decomposed)
      }
      #expect(try await one.waitUntilSynced(timeout: .seconds(10)).isComplete)
      for store in [one, other] {
        try await eventually { store.keys.count == 2 }
        #expect(store.value(forKey: composed) == "composed")
        #expect(store.value(forKey: decomposed) == "decomposed")
        #expect(store.keys == [decomposed, composed].map { KeyValueStore.Key($0) })
      }
      try await one.commit { $0.removeValue(forKey: composed) }
      try await eventually { other.keys.count == 1 }
      #expect(other.value(forKey: decomposed) == "decomposed")
    }
    try first.close()
    try second.close()
  }

  @Test func aCopiedDirectoryThatRunsIsReportedByBothCopies() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let third = try await running(first) { try await nodes.join("third", by: first) }
    let path = nodes.directory.child("0")
    try first.close()
    let copied = nodes.directory.child("copy")
    try FileManager.default.copyItem(atPath: path, toPath: copied)
    let port = first.configuration.port
    let one = try await Nodes.open(path, port: port)
    let peers = [port, third.configuration.port].map { "127.0.0.1:\($0)" }
    let copy = try await Nodes.open(copied, peers: peers)
    try await running(one, copy) {
      try await eventually { one.status.problems.map(\.code) == [.cloned] }
      try await eventually { copy.status.problems.map(\.code) == [.cloned] }
    }
    try await running(third, one) {
      try await one.store("com.example.test").commit { $0.set(1, forKey: "one") }
      #expect(
        try await one.store("com.example.test").waitUntilSynced(timeout: .seconds(10)).isComplete)
    }
    try await running(third, copy) {
      try await copy.store("com.example.test").commit { $0.set(2, forKey: "copy") }
      let store = try third.store("com.example.test")
      try await eventually { store.keys == ["copy", "one"] }
      let other = try copy.store("com.example.test")
      try await eventually { other.keys == ["copy", "one"] }
    }
    for node in [one, copy, third] {
      #expect(node.status.counters.forks == 0)
      try node.close()
    }
  }

  @Test func aNewDeviceHasEverythingBeforeItRuns() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let one = try first.store("com.example.test")
    // Nobody but the first device ever had it: it is published for the one that joins.
    for number in 0..<1_024 { try one.set(.integer(Int64(number)), forKey: "key.\(number)") }
    let second = try await running(first) { try await nodes.join("second", by: first) }
    try first.close()
    let other = try second.store("com.example.test")
    #expect(other.dictionary.count == 1_024)
    #expect(other.value(forKey: "key.1023") == 1_023)
    // The second device writes after it has seen that, so its write is later.
    try other.set("after", forKey: "key.0")
    #expect(other.value(forKey: "key.0") == "after")
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
      try await second.meetsPeer()
      try await third.meetsPeer()
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
      try await eventually {
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
    let policy = KeyValueStore.Policy(totalBytes: 100, keys: 2)
    let one = try first.store("com.example.small", policy: policy)
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let other = try second.store("com.example.small", policy: policy)
    let third = try await running(first, second) {
      try await second.meetsPeer()
      return try await nodes.join("third", by: first)
    }
    // The first publishes while the second is away and writes too; there is room for one.
    try await running(first, third) {
      _ = try third.store("com.example.small", policy: policy)
      try one.set("1", forKey: "a")
      try one.set("2", forKey: "b")
      try await eventually { try !one.syncReport.hasUnpublishedWrites }
    }
    try other.set("3", forKey: "c")
    try await other.commit {
      $0.set("4", forKey: "d")
      $0.set("5", forKey: "c")
    }
    let error = #expect(throws: KithError.self) { try other.set("6", forKey: "e") }
    #expect(error?.code == .quotaExceeded && error?.key == "e")
    #expect(error?.message.contains("of 2 keys") == true)
    try await running(first, second) {
      try await eventually {
        try other.dictionary == ["a": "1", "b": "2"] && !other.refusals.isEmpty
      }
    }
    try second.close()
    // In spite of closing they are there until they are taken.
    let again = try await Nodes.open(nodes.directory.child("second"))
    let reopened = try again.store("com.example.small", policy: policy)
    let refused = try reopened.takeRefusals()
    #expect(!refused.isEmpty && refused.allSatisfy { $0.reason == .quota })
    #expect(refused.last?.writes.map(\.value) == ["5", "4"])
    #expect(try reopened.refusals.isEmpty)
    for node in [first, third, again] { try node.close() }
  }

  @Test func whatDoesNotFitWhenPublishedAtTheSameTimeIsHidden() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let policy = KeyValueStore.Policy(totalBytes: 100, keys: 2)
    let one = try first.store("com.example.small", policy: policy)
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let other = try second.store("com.example.small", policy: policy)
    try await running(first, second) {
      try await second.meetsPeer()
    }
    for (store, keys) in [(one, ["a", "b"]), (other, ["c", "d"])] {
      for key in keys { try store.set("1", forKey: key) }
    }
    try await running(first, second) {
      try await eventually {
        let unshown = try one.hiddenEntries.count + one.refusals.count + other.refusals.count
        return try one.dictionary == other.dictionary && one.keys.count == 2 && unshown == 2
          && one.hiddenEntries == other.hiddenEntries
      }
    }
    try first.close()
    try second.close()
  }
}
