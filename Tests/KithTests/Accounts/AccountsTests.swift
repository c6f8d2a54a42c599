import Foundation
import KithCore
import KithTestSupport
import Testing

@testable import Kith

/// Signing in and out, and the stores' values meanwhile (`Docs/Protocol/drafts.md`, "Adoption").
@Suite(.timeLimit(.minutes(5)))
struct AccountsTests {
  private static let store = "com.example.test"

  @Test func `without an account a store works locally, and over restarts`() async throws {
    let directory = try TestDirectory()
    do {
      let accounts = try Self.open(directory.child("a"))
      #expect(accounts.signedIn == nil)
      let store = try accounts.store(Self.store)
      try store.set("local", forKey: "theme")
      #expect(store === (try accounts.store(Self.store)))
      #expect(store.value(forKey: "theme") == "local")
      #expect(try accounts.known.isEmpty)
      try accounts.close()
    }
    let accounts = try Self.open(directory.child("a"))
    #expect(try accounts.store(Self.store).value(forKey: "theme") == "local")
    try accounts.close()
    #expect(throws: KithError.self) { try accounts.store("com.example.other") }
  }

  /// Its stores were in a directory `~` below the current one.
  @Test func `a directory whose tilde no shell replaced is refused`() {
    let error = #expect(throws: KithError.self) {
      _ = try Accounts(Accounts.Configuration(directory: "~/kith-test"))
    }
    #expect(error?.code == .missing)
    #expect(error?.message.contains("begins with ~") == true)
    #expect(!FileManager.default.fileExists(atPath: "~"))
  }

  @Test func `local writes are the new account's first data`() async throws {
    let directory = try TestDirectory()
    let accounts = try Self.open(directory.child("a"))
    let store = try accounts.store(Self.store)
    try store.set("local", forKey: "theme")
    var changes = store.changes.makeAsyncIterator()
    let recoveryKey = try await accounts.createAccount(name: "laptop").recoveryKey
    #expect(recoveryKey.count > 50)
    #expect(accounts.signedIn != nil)
    #expect(store.value(forKey: "theme") == "local")
    let change = try #require(await changes.next())
    #expect(change.reason == .accountChange)
    #expect(change.items == [.init(key: "theme", old: "local", new: "local")])
    // It is the account's now, and no longer local.
    try await accounts.signOut()
    #expect(accounts.signedIn == nil)
    #expect(store.dictionary.isEmpty)
    #expect(await changes.next()?.items == [.init(key: "theme", old: "local", new: nil)])
    try accounts.close()
    // The command line sees the same device in the place in which it looks for one.
    let node = try await Nodes.open(directory.child("a"))
    #expect(try node.store(Self.store).value(forKey: "theme") == "local")
    try node.close()
  }

  @Test func `signing in to an account with data loses early writes of its keys only`()
    async throws
  {
    let nodes = try await Nodes()
    let first = nodes.first
    let good = try first.store(Self.store)
    try await good.commit {
      $0.set("dark", forKey: "theme")
      $0.set(12, forKey: "size")
    }
    let accounts = try Self.open(nodes.directory.child("a"))
    let store = try accounts.store(Self.store)
    try store.set("default", forKey: "theme")
    try await store.commit {
      $0.set(9, forKey: "size")
      $0.set("lost with it", forKey: "other")
    }
    try store.set("kept", forKey: "fresh")
    var changes = store.changes.makeAsyncIterator()
    try await running(first) {
      try await Self.pair(first) { token in
        try await accounts.signIn(code: token, name: "second") { _, _ in true }
      }
      #expect(accounts.signedIn == first.account)
      // At once, with nobody serving here.
      #expect(store.value(forKey: "theme") == "dark")
      try await Self.serving(accounts) {
        try await eventually { good.value(forKey: "fresh") == "kept" }
      }
    }
    #expect(store.value(forKey: "size") == 12)
    #expect(store.value(forKey: "other") == nil)
    #expect(good.value(forKey: "theme") == "dark")
    // First what the account brought, and which of the early writes lost.
    let change = try #require(await changes.next())
    #expect(change.reason == .initialSyncChange)
    #expect(change.keys == ["other", "size", "theme"])
    #expect(change.superseded == ["other", "size", "theme"])
    let account = try #require(await changes.next())
    #expect(account.reason == .accountChange)
    #expect(account.keys == ["fresh", "other", "size", "theme"])
    #expect(account.items.allSatisfy { $0.old == $0.new })
    #expect(try store.refusals.map(\.reason) == [.initialSync, .initialSync])
    try accounts.close()
    try first.close()
  }

  @Test func `switching shows the other account's data, and keeps each in its place`() async throws
  {
    let directory = try TestDirectory()
    let accounts = try Self.open(directory.child("a"))
    let store = try accounts.store(Self.store)
    try await accounts.createAccount(name: "one")
    let one = try #require(accounts.signedIn)
    try store.set("of one", forKey: "one")
    try store.set("of one", forKey: "both")
    try await accounts.createAccount(name: "other")
    let other = try #require(accounts.signedIn)
    #expect(one != other)
    #expect(store.dictionary.isEmpty)
    try store.set("of the other", forKey: "both")
    var changes = store.changes.makeAsyncIterator()
    try await accounts.signIn(to: one)
    let change = try #require(await changes.next())
    #expect(change.reason == .accountChange)
    #expect(
      change.items == [
        .init(key: "both", old: "of the other", new: "of one"),
        .init(key: "one", old: nil, new: "of one"),
      ])
    #expect(try accounts.known.map(\.isSignedIn) == [true, false])
    try accounts.close()
    let again = try Self.open(directory.child("a"))
    #expect(again.signedIn == one)
    try await again.signIn(to: other)
    #expect(try again.store(Self.store).value(forKey: "both") == "of the other")
    try again.close()
  }

  @Test func `a store that the account cannot hold shows nothing of the one before`() async throws {
    let directory = try TestDirectory()
    let full = try Self.open(directory.child("a"))
    try await full.createAccount(name: "full")
    let account = try #require(full.signedIn)
    // As many as an account may have.
    for number in 0..<256 { _ = try full.store("store.\(number)") }
    try full.close()
    let accounts = try Self.open(directory.child("a"))
    try await accounts.createAccount(name: "other")
    let store = try accounts.store(Self.store)
    try store.set("of the other", forKey: "secret")
    var changes = store.changes.makeAsyncIterator()
    try await accounts.signIn(to: account)
    #expect(store.dictionary.isEmpty)
    let change = try #require(await changes.next())
    #expect(change.reason == .accountChange)
    #expect(change.items == [.init(key: "secret", old: "of the other", new: nil)])
    #expect(throws: KithError.self) { try store.set(1, forKey: "k") }
    try accounts.close()
  }

  @Test func `a write after signing out loses to the account when it is signed in again`()
    async throws
  {
    let directory = try TestDirectory()
    let accounts = try Self.open(directory.child("a"))
    let store = try accounts.store(Self.store)
    try await accounts.createAccount(name: "one")
    let account = try #require(accounts.signedIn)
    try store.set("good", forKey: "theme")
    try await accounts.signOut()
    try store.set("default", forKey: "theme")
    try store.set("new", forKey: "fresh")
    var changes = store.changes.makeAsyncIterator()
    try await accounts.signIn(to: account)
    #expect(store.value(forKey: "theme") == "good")
    #expect(store.value(forKey: "fresh") == "new")
    let lost = try #require(await changes.next())
    #expect(lost.reason == .initialSyncChange)
    #expect(lost.items == [.init(key: "theme", old: "default", new: "good")])
    #expect(lost.superseded == ["theme"])
    let change = try #require(await changes.next())
    #expect(change.reason == .accountChange)
    #expect(change.keys == ["fresh", "theme"])
    #expect(try store.refusals.map { $0.writes.map(\.value) } == [["default"]])
    try accounts.close()
  }

  /// The account's device is open in a program that knows nothing of signing in: it is asked.
  @Test func `local values become the account's even if another node has its device open`()
    async throws
  {
    let directory = try TestDirectory()
    let path = directory.child("a")
    let (summary, _) = try Node.createAccount(directory: path, name: "first")
    let node = try await Nodes.open(path, servesControlSocket: true)
    try await running(node) {
      try await eventually { (try? await LocalClient(directory: path).status()) != nil }
      try await node.write([("theme", "good")], in: Self.store)
      let accounts = try await onThread { try Self.open(path) }
      try await accounts.signOut()
      let store = try await onThread { try accounts.store(Self.store) }
      try await onThread {
        try store.set("default", forKey: "theme")
        try store.set("kept", forKey: "fresh")
      }
      var changes = store.changes.makeAsyncIterator()
      try await accounts.signIn(to: summary.account)
      #expect(try await node.value(forKey: "fresh", in: Self.store) == "kept")
      #expect(try await node.value(forKey: "theme", in: Self.store) == "good")
      #expect(store.value(forKey: "fresh") == "kept" && store.value(forKey: "theme") == "good")
      #expect(await changes.next()?.reason == .initialSyncChange)
      #expect(await changes.next()?.reason == .accountChange)
      let refused = try await node.refusals(in: Self.store, takingThrough: nil)
      #expect(refused.map { $0.writes.map(\.value) } == [["default"]])
      try await accounts.signOut()
      #expect(store.dictionary.isEmpty)
      try await onThread { try accounts.close() }
    }
    try node.close()
  }

  @Test func `writes that the account can never take keep nobody from signing out`() async throws {
    let directory = try TestDirectory()
    var accounts = try Self.open(directory.child("a"))
    let account = try await accounts.createAccount(name: "first").summary.account
    for number in 0..<Limits.stores { _ = try accounts.store("com.example.store\(number)") }
    try accounts.close()
    // None of them is open here, so the local stores do not get them.
    accounts = try Self.open(directory.child("a"))
    try await accounts.signOut()
    let (excess, other) = (try accounts.store(Self.store), try accounts.store("com.example.store7"))
    try excess.set("local", forKey: "theme")
    try other.set("local", forKey: "theme")
    let error = await #expect(throws: KithError.self) { try await accounts.signIn(to: account) }
    #expect(error?.code == .tooManyStores && error?.message.contains(Self.store) == true)
    #expect(accounts.signedIn == account)
    #expect(try await accounts.status().problems.map(\.message) == [error?.message])
    #expect(other.value(forKey: "theme") == "local" && excess.dictionary.isEmpty)
    try await accounts.signOut()
    #expect(other.dictionary.isEmpty)
    #expect(excess.value(forKey: "theme") == "local")
    try accounts.close()
  }

  /// Shown before the account exists, or there is none.
  @Test func `an account whose recovery key cannot be shown is not begun`() async throws {
    let directory = try TestDirectory()
    let accounts = try Self.open(directory.child("a"))
    let error = await #expect(throws: KithError.self) {
      try await accounts.createAccount(name: "first") { _, key throws(KithError) in
        #expect(key.count > 50)
        throw KithError(.cancelled, "The window was closed.")
      }
    }
    #expect(error?.code == .cancelled && accounts.signedIn == nil)
    #expect(try accounts.known.isEmpty)
    try await accounts.createAccount(name: "second")
    #expect(accounts.signedIn != nil)
    try accounts.close()
  }

  @Test
  func `a running program is told who signs in, and follows others' changes to the directory`()
    async throws
  {
    let directory = try TestDirectory()
    let accounts = try Self.open(directory.child("a"))
    let store = try accounts.store(Self.store)
    try store.set("local", forKey: "theme")
    var updates = accounts.signedInUpdates.makeAsyncIterator()
    #expect(try await updates.next() == .some(nil))
    try await Self.serving(accounts) {
      // As `kith account create` does.
      let (summary, _) = try Node.createAccount(directory: directory.child("a"), name: "by hand")
      try await eventually { accounts.signedIn == summary.account }
      #expect(store.value(forKey: "theme") == "local")
      try await eventually { !(try await accounts.status().isRunning == false) }
      try await accounts.signOut()
      #expect(accounts.signedIn == nil)
      #expect(store.dictionary.isEmpty)
      try await accounts.createAccount(name: "second")
      #expect(accounts.signedIn != summary.account)
    }
    #expect(try await updates.next() == accounts.signedIn)
    try accounts.close()
    #expect(try await updates.next() == nil)
  }

  @Test func `writes never fail because an account changes under them`() async throws {
    let directory = try TestDirectory()
    let accounts = try Self.open(directory.child("a"))
    let store = try accounts.store(Self.store)
    try await accounts.createAccount(name: "one")
    let one = try #require(accounts.signedIn)
    try await accounts.createAccount(name: "other")
    let other = try #require(accounts.signedIn)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<2 {
        group.addTask {
          var number: Int64 = 0
          while !Task.isCancelled {
            number += 1
            if writer == 0 {
              try store.set(.integer(number), forKey: "sync")
            } else {
              try await store.commit { $0.set(.integer(number), forKey: "durable") }
            }
            await Task.yield()
          }
        }
      }
      for round in 0..<10 { try await accounts.signIn(to: round % 2 == 0 ? one : other) }
      group.cancelAll()
      try await group.waitForAll()
    }
    try accounts.close()
  }

  @Test func `a damaged registry is said, and nothing is changed`() throws {
    let directory = try TestDirectory()
    for text in [
      "", "{", #"{"version":2,"devices":[]}"#, #"{"version":1,"devices":[],"signedIn":"../x"}"#,
    ] {
      try FileManager.default.createDirectory(
        atPath: directory.child("a"), withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
      try Data(text.utf8).write(to: URL(filePath: directory.child("a") + "/accounts.json"))
      let error = #expect(throws: KithError.self) { try Self.open(directory.child("a")) }
      #expect(error?.code == .damaged, "\(text)")
    }
  }

  // MARK: Support

  static func open(_ path: String) throws -> Accounts {
    var configuration = Accounts.Configuration(directory: path)
    configuration.hosts = ["127.0.0.1"]
    configuration.port = 0
    configuration.discoversPeers = false
    configuration.logger.logLevel = .error
    return try Accounts(configuration)
  }

  /// Invites a device and hands over the token.
  static func pair(
    _ inviter: Node, _ join: @escaping @Sendable (String) async throws -> Void
  ) async throws {
    let (tokens, continuation) = AsyncStream<String>.makeStream()
    async let invited = inviter.invite {
      continuation.yield($0.token)
      continuation.finish()
    } onJoinRequest: { _ in
      true
    }
    for await token in tokens { try await join(token) }
    _ = try await invited
  }

  /// Serves accounts while the body does its work.
  static func serving(
    _ accounts: Accounts, body: @escaping @Sendable () async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await accounts.run()
        return false
      }
      group.addTask {
        try await body()
        return true
      }
      defer { group.cancelAll() }
      while let isDone = try await group.next(), !isDone {}
    }
  }
}
