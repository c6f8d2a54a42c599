import Kith
import Testing

@testable import KithTesting

/// A program's own tests, as its author would write them: no directory, no port, no waiting.
@Suite struct TestAccountTests {
  private static let store = "com.example.Editor"

  @Test func `transactions that meet lose no update`() async throws {
    let account = try TestAccount()
    let store = try account[0].store(Self.store)
    let count = StoreKey("count", default: 0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<250 { try await store.commit { $0[count] += 1 } } }
      }
      try await group.waitForAll()
    }
    #expect(store[count] == 2_000)
    #expect(try account[1].store(Self.store)[count] == 2_000)
  }

  @Test func `one device's write is on the others when the call returns`() throws {
    let account = try TestAccount(devices: 3)
    try account[0].store(Self.store).set("dark", forKey: "theme")
    for device in 1...2 {
      #expect(try account[device].store(Self.store).value(forKey: "theme") == "dark")
    }
  }

  @Test func `apart, both write; together, the later one wins on both`() throws {
    let account = try TestAccount()
    let (laptop, desktop) = (try account[0].store(Self.store), try account[1].store(Self.store))
    account.cut(0, 1)
    try laptop.set("light", forKey: "theme")
    account.advance(by: .seconds(1))
    try desktop.set("dark", forKey: "theme")
    #expect(laptop.value(forKey: "theme") == "light")
    account.mend(0, 1)
    #expect(laptop.value(forKey: "theme") == "dark")
    #expect(desktop.value(forKey: "theme") == "dark")
  }

  @Test func `a change says why it came, and which keys`() async throws {
    let account = try TestAccount()
    let (laptop, desktop) = (try account[0].store(Self.store), try account[1].store(Self.store))
    var changes = desktop.changes.makeAsyncIterator()
    try laptop.set("dark", forKey: "theme")
    let change = try #require(await changes.next())
    #expect(change.reason == .externalChange)
    #expect(change.keys == ["theme"])
  }

  @Test func `two that overfill the store apart: the later claim is hidden, and is heard of`()
    throws
  {
    let account = try TestAccount()
    let policy = KeyValueStore.Policy(totalBytes: 100, keys: 4, valueBytes: 100)
    let laptop = try account[0].store(Self.store, policy: policy)
    let desktop = try account[1].store(Self.store, policy: policy)
    account.cut(0, 1)
    try laptop.set(.string(String(repeating: "l", count: 60)), forKey: "laptop")
    account.advance(by: .seconds(1))
    try desktop.set(.string(String(repeating: "d", count: 60)), forKey: "desktop")
    account.mend(0, 1)
    #expect(laptop.keys == desktop.keys)
    #expect(laptop.keys.count == 1)
    let refused = try laptop.refusals.count + desktop.refusals.count
    #expect(try refused + laptop.hiddenEntries.count == 1)
  }

  @Test func `a delay takes virtual time, and no real one`() throws {
    let account = try TestAccount()
    let (laptop, desktop) = (try account[0].store(Self.store), try account[1].store(Self.store))
    account.setFaults(delay: .seconds(3_600))
    try laptop.set(1, forKey: "n")
    account.advance(by: .seconds(3_599))
    #expect(desktop.value(forKey: "n") == nil)
    account.advance(by: .seconds(2))
    #expect(desktop.value(forKey: "n") == 1)
  }

  @Test(arguments: UInt64(1)...8) func `links that lose and repeat lose nothing`(seed: UInt64)
    throws
  {
    let account = try TestAccount(devices: 4, seed: seed)
    account.setFaults(delay: .milliseconds(20), loss: 0.05, duplication: 0.1)
    for number in 0..<60 {
      try account[number % 4].store(Self.store).set(
        .integer(Int64(number)), forKey: "key\(number % 7)")
      account.advance(by: .milliseconds(300))
    }
    account.setFaults()
    account.advance(by: .seconds(60))
    let views = try (0..<4).map { try account[$0].store(Self.store).dictionary }
    #expect(views.allSatisfy { $0 == views[0] }, "seed \(seed)")
    #expect(views[0].count == 7)
  }

  @Test func `a durable write is there after a crash, and is published then`()
    async throws
  {
    let account = try TestAccount()
    _ = try account[1].store(Self.store)
    account.cut(0, 1)
    try await account[0].store(Self.store).commit { $0.set("kept", forKey: "k") }
    try account.crash(0)
    #expect(try account[0].store(Self.store).value(forKey: "k") == "kept")
    account.mendAll()
    #expect(try account[1].store(Self.store).value(forKey: "k") == "kept")
  }

  @Test func `a device that joins pulls what is there`() throws {
    let account = try TestAccount()
    try account[0].store(Self.store).set(1, forKey: "n")
    let late = try account.join(by: 1)
    #expect(try late.store(Self.store).value(forKey: "n") == 1)
    account.isolate(2)
    try account[0].store(Self.store).set(2, forKey: "n")
    #expect(try late.store(Self.store).value(forKey: "n") == 1)
  }

  @Test func `synchronizing says who has it`() async throws {
    let account = try TestAccount(devices: 3)
    account.isolate(2)
    let store = try account[0].store(Self.store)
    try store.set(1, forKey: "n")
    let report = try await store.waitUntilSynced(timeout: .milliseconds(10))
    #expect(report.complete == [account[1].id])
    #expect(report.incomplete == [account[2].id])
  }
}

/// A program whose person signs out and in, as its author would test it.
@Suite(.timeLimit(.minutes(5))) struct SigningInTests {
  private static let store = "com.example.Editor"

  @Test func `signed out, a device shows what is local; signed in, what the account has`()
    async throws
  {
    let account = try TestAccount()
    let (laptop, desktop) = (account[0], account[1])
    let (there, store) = (try laptop.store(Self.store), try desktop.store(Self.store))
    #expect(store === (try desktop.store(Self.store)))
    try there.set("dark", forKey: "theme")
    var changes = store.changes.makeAsyncIterator()
    try desktop.signOut()
    #expect(store.dictionary.isEmpty)
    var change = try #require(await changes.next())
    #expect(change.reason == .accountChange)
    #expect(change.keys == ["theme"])
    #expect(change.items[0].old == "dark" && change.items[0].new == nil)
    try store.set("local", forKey: "theme")
    try store.set(12, forKey: "size")
    try there.set("light", forKey: "theme")
    #expect(store.value(forKey: "theme") == "local", "no link is left")
    #expect(there.value(forKey: "size") == nil)
    try desktop.signIn()
    change = try #require(await changes.next())
    #expect(change.reason == .initialSyncChange)
    #expect(change.superseded == ["theme"])
    change = try #require(await changes.next())
    #expect(change.reason == .accountChange)
    #expect(change.keys == ["size", "theme"])
    #expect(store.value(forKey: "theme") == "light")
    #expect(there.value(forKey: "theme") == "light")
    #expect(there.value(forKey: "size") == 12, "what the account did not have is its own now")
    #expect(try store.refusals.map { $0.writes.map(\.value) } == [["local"]])
    // Nothing is local any more.
    try desktop.signOut()
    #expect(store.dictionary.isEmpty)
    try desktop.signOut()
    try desktop.signIn()
    try desktop.signIn()
    #expect(store.dictionary == there.dictionary)
  }

  /// It unites its words with the account's at the first sync, and reads the store again when the
  /// account changes.
  @Test func `a program that unites at the first sync keeps its own values`() async throws {
    let account = try TestAccount()
    let words = StoreKey<[String]>("words", default: [])
    let (there, store) = (try account[0].store(Self.store), try account[1].store(Self.store))
    try there.set(["one", "two"], for: words)
    try account[1].signOut()
    var memory = ["three"]
    try store.set(memory, for: words)
    var changes = store.changes.makeAsyncIterator()
    try account[1].signIn()
    for _ in 0..<2 {
      let change = try #require(await changes.next())
      #expect(change.keys == ["words"])
      switch change.reason {
      case .initialSyncChange:
        memory = Set(memory).union(store[words]).sorted()
        try store.set(memory, for: words)
      case .accountChange: memory = store[words]
      default: Issue.record("\(change.reason)")
      }
    }
    #expect(memory == ["one", "three", "two"])
    #expect(there[words] == memory)
  }

  @Test func `a store opened while signed out is the account's later`() throws {
    let account = try TestAccount()
    try account[1].signOut()
    let store = try account[1].store(Self.store)
    try store.set(1, forKey: "n")
    try account[1].signIn()
    #expect(try account[0].store(Self.store).value(forKey: "n") == 1)
    #expect(throws: KithError.self) {
      try account[1].store(
        Self.store, policy: KeyValueStore.Policy(totalBytes: 9, keys: 1, valueBytes: 9))
    }
  }

  @Test func `a crash while signed out keeps what is local`() async throws {
    let account = try TestAccount()
    try account[1].signOut()
    try await account[1].store(Self.store).commit { $0.set("kept", forKey: "k") }
    try account.crash(1)
    let store = try account[1].store(Self.store)
    #expect(store.value(forKey: "k") == "kept")
    try account[1].signIn()
    #expect(try account[0].store(Self.store).value(forKey: "k") == "kept")
  }
}

/// Time in which devices only repeat what they cover is skipped.
@Suite struct RestTests {
  private static let store = "com.example.Editor"

  /// Without skipping, there are 2,880 messages on each of 240 ways.
  @Test func `a day of sixteen idle devices is little work`() throws {
    let account = try TestAccount(devices: 16)
    try account[0].store(Self.store).set("dark", forKey: "theme")
    let before = account.network.delivered
    account.advance(by: .seconds(86_400))
    #expect(account.network.delivered - before < 20_000)
    try account[3].store(Self.store).set("light", forKey: "theme")
    #expect(try account[15].store(Self.store).value(forKey: "theme") == "light")
  }

  @Test func `a day is skipped also while messages take time`() throws {
    let account = try TestAccount(devices: 3)
    account.setFaults(delay: .milliseconds(200), duplication: 0.1)
    try account[0].store(Self.store).set("dark", forKey: "theme")
    account.advance(by: .seconds(86_400))
    #expect(try account[2].store(Self.store).value(forKey: "theme") == "dark")
    #expect(account.network.delivered < 2_000)
  }

  @Test(arguments: [60, 3_600, 86_400, 40 * 86_400])
  func `devices that were apart meet again as if all of them had slept`(seconds: Int) throws {
    let account = try TestAccount(devices: 4)
    let stores = try (0..<4).map { try account[$0].store(Self.store) }
    account.isolate(3)
    for round in 1...3 {
      try stores[0].set(.integer(Int64(round)), forKey: "n")
      try stores[3].set(.integer(Int64(round)), forKey: "m")
      account.advance(by: .seconds(seconds))
    }
    #expect(stores[3].value(forKey: "n") == nil)
    account.mendAll()
    #expect(stores.allSatisfy { $0.value(forKey: "n") == 3 && $0.value(forKey: "m") == 3 })
    account.advance(by: .seconds(seconds))
    try stores[3].set(4, forKey: "n")
    #expect(stores.allSatisfy { $0.value(forKey: "n") == 4 })
  }
}
