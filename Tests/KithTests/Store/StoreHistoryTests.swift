import Foundation
import KithCore
import KithStorage
import KithTestSupport
import Testing

@testable import Kith

/// The values that a store showed before, and undoing.
@Suite(.timeLimit(.minutes(2)))
struct StoreHistoryTests {
  private static let store = "com.example.test"

  private static func configuration(
    _ path: String, keepsHistory: Bool? = nil
  ) -> Node.Configuration {
    var configuration = Node.Configuration(directory: path)
    configuration.hosts = ["127.0.0.1"]
    configuration.port = 0
    configuration.discoversPeers = false
    configuration.servesControlSocket = false
    configuration.logger.logLevel = .error
    configuration.keepsHistory = keepsHistory
    return configuration
  }

  /// A node of a new account, which does not run.
  private static func node(in directory: TestDirectory) async throws -> Node {
    _ = try Node.createAccount(directory: directory.child("a"), name: "a")
    return try await Node.open(configuration(directory.child("a")))
  }

  @Test func `undo brings back what a key showed, and undoing it again takes it back`() async throws
  {
    let directory = try TestDirectory()
    let node = try await Self.node(in: directory)
    let store = try node.store(Self.store)
    #expect(try await store.undo("theme") == nil)
    try store.set("light", forKey: "theme")
    try store.set("dark", forKey: "theme")
    #expect(try store.history(of: "theme").map(\.value) == ["light", nil])
    #expect(try store.history(of: "theme").map(\.endedBy) == [node.device, node.device])
    #expect(try await store.undo("theme")?.value == "light")
    #expect(store.value(forKey: "theme") == "light")
    #expect(try await store.undo("theme")?.value == "dark")
    #expect(store.value(forKey: "theme") == "dark")
    #expect(try store.history(limit: 2).map(\.value) == ["light", "dark"])
    try node.close()
  }

  @Test func `a transaction is taken back whole, and that is one, too`() async throws {
    let directory = try TestDirectory()
    let node = try await Self.node(in: directory)
    let store = try node.store(Self.store)
    try store.set("buy milk", forKey: "first")
    try await store.commit {
      $0.set("buy bread", forKey: "first")
      $0.set("call home", forKey: "second")
    }
    try store.set("alone", forKey: "third")
    let last = try #require(try store.history(of: "second").first)
    #expect(try store.history(of: "first").first?.transaction == last.transaction)
    #expect(try store.history(of: "third").first?.transaction != last.transaction)
    let undone = try await store.undo(transaction: last.transaction)
    #expect(Set(undone.map(\.key)) == ["first", "second"])
    #expect(store.dictionary == ["first": "buy milk", "third": "alone"])
    let newest = try #require(try store.history(limit: 1).first)
    try await store.undo(transaction: newest.transaction)
    #expect(store.value(forKey: "first") == "buy bread")
    #expect(store.value(forKey: "second") == "call home")
    #expect(try await store.undo(transaction: 999).isEmpty)
    try node.close()
  }

  @Test func `undoing a creation removes the key, and a number names an older value`() async throws
  {
    let directory = try TestDirectory()
    let node = try await Self.node(in: directory)
    let store = try node.store(Self.store)
    try store.set(1, forKey: "k")
    let undone = try #require(try await store.undo("k"))
    #expect(undone.value == nil && undone.key == "k" && store.value(forKey: "k") == nil)
    #expect(try await store.undo("k")?.value == 1)
    try store.set(2, forKey: "k")
    try store.set(3, forKey: "other")
    let number = try #require(try store.history(of: "k").first { $0.value == 1 }?.number)
    try store.set(4, forKey: "k")
    #expect(try await store.undo("k", to: number)?.number == number)
    #expect(store.value(forKey: "k") == 1)
    // Neither another key's number nor one that is not kept.
    #expect(try await store.undo("other", to: number) == nil)
    #expect(try await store.undo("k", to: 999) == nil)
    #expect(store.value(forKey: "k") == 1 && store.value(forKey: "other") == 3)
    try node.close()
  }

  @Test func `keys that Unicode calls equivalent stay apart`() async throws {
    let directory = try TestDirectory()
    let node = try await Self.node(in: directory)
    let store = try node.store(Self.store)
    try store.set(1, forKey: "é")
    try store.set(2, forKey: "e\u{301}")
    let history = try store.history()
    #expect(Set(history.map(\.key)).count == 2)
    #expect(try store.history(of: history[0].key).count == 1)
    try await store.undo(history[0].key)
    #expect(store.keys == [history[1].key])
    try node.close()
  }

  @Test func `undo keeps to the quota, and then changes nothing`() async throws {
    let directory = try TestDirectory()
    let node = try await Self.node(in: directory)
    let store = try node.store(Self.store, policy: Policy(totalBytes: 1_000))
    let large = PropertyListValue.string(String(repeating: "l", count: 600))
    try store.set(large, forKey: "a")
    try store.removeValue(forKey: "a")
    try store.set(large, forKey: "b")
    let before = try store.history()
    let error = await #expect(throws: KithError.self) { try await store.undo("a") }
    #expect(error?.code == .quotaExceeded)
    #expect(try store.history() == before && store.keys == ["b"])
    try node.close()
  }

  @Test func `it outlives the node, and one setting deletes it until it is set again`() async throws
  {
    let directory = try TestDirectory()
    let path = directory.child("a")
    let first = try await Self.node(in: directory)
    let written = try first.store(Self.store)
    try written.set(1, forKey: "k")
    try written.set(2, forKey: "k")
    let kept = try written.history()
    try first.close()
    // What the settings of the following nodes leave, after each wrote once more.
    for (setting, isEmpty) in [
      (nil, false), (false, true), (nil, true), (true, true), (nil, false),
    ] as [(Bool?, Bool)] {
      let node = try await Node.open(Self.configuration(path, keepsHistory: setting))
      let store = try node.store(Self.store)
      let history = try store.history()
      #expect(history.isEmpty == isEmpty)
      if setting == nil, history.count == kept.count { #expect(history == kept) }
      try store.set(.integer(Int64.random(in: 10...(.max))), forKey: "k")
      try node.close()
      let device = try DeviceDirectory.open(at: path)
      let snapshot = try device.storage.load()
      try device.close()
      #expect(snapshot.keepsHistory == (setting ?? snapshot.keepsHistory))
      let stored = snapshot.stores.values.map(\.pastValues.count).reduce(0, +)
      #expect((stored == 0) == !snapshot.keepsHistory)
    }
  }

  @Test func `attached programs see the same history, and each hears of an undo`() async throws {
    let served = try await Served()
    try await served.run {
      let owner = try served.node.store(Self.store)
      let program = try await served.attach()
      try await owner.commit { $0.set("light", forKey: "theme") }
      try await owner.commit { $0.set("dark", forKey: "theme") }
      let seen = try await blocking { try program.store.history(of: "theme") }
      #expect(try owner.history(of: "theme") == seen && seen.count == 2)
      let changes = owner.changes
      #expect(try await program.store.undo("theme")?.value == "light")
      // At once, before the program hears it as a change.
      #expect(program.store.value(forKey: "theme") == "light")
      #expect(owner.value(forKey: "theme") == "light")
      var heard = changes.makeAsyncIterator()
      #expect(await heard.next()?.keys == ["theme"])
      let client = served.client
      let undone = try await client.undo(.key("theme", to: nil), in: Self.store)
      #expect(undone.map(\.value) == ["dark"])
      #expect(try await client.undo(.key("none", to: nil), in: Self.store).isEmpty)
      #expect(try await client.undo(.key("theme", to: nil), in: "com.example.none").isEmpty)
      let all = try await client.history(of: nil, in: Self.store, limit: 9)
      #expect(try owner.history() == all)
      #expect(try await client.history(of: nil, in: "com.example.none", limit: 9).isEmpty)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func `the account gets no history of the local stores, and they keep none`() async throws {
    let directory = try TestDirectory()
    let accounts = try AccountsTests.open(directory.child("a"))
    let store = try accounts.store(Self.store)
    try store.set("one", forKey: "k")
    try store.set("two", forKey: "k")
    #expect(try store.history().count == 2)
    try await accounts.createAccount(name: "a")
    #expect(store.value(forKey: "k") == "two")
    // The account never showed the first.
    #expect(try store.history().isEmpty)
    try accounts.close()
    let local = try DeviceDirectory.open(at: directory.child("a") + "/local")
    let stored = try local.storage.load().stores.values
    #expect(stored.allSatisfy { $0.pastValues.isEmpty && $0.drafts.isEmpty })
    try local.close()
  }
}
