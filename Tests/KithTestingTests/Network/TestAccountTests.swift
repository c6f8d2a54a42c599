import Kith
import KithTesting
import Testing

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
