import Kith
import KithTesting
import Testing

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
