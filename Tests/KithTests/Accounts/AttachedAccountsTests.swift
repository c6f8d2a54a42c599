import Foundation
import Kith
import Testing

/// Several programs with one directory.
@Suite(.timeLimit(.minutes(5)))
struct AttachedAccountsTests {
  private static let store = "com.example.test"

  private static func open(_ path: String) async throws -> Accounts {
    try await blocking { try AccountsTests.open(path) }
  }

  @Test func `two programs share a directory, and the second takes over`() async throws {
    let directory = try TestDirectory()
    let path = directory.child("a")
    let owner = try await Self.open(path)
    _ = try await owner.createAccount(name: "laptop")
    let ownersStore = try owner.store(Self.store)
    try ownersStore.set("dark", forKey: "theme")
    var second: Accounts?
    var store: KeyValueStore?
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await owner.run() }
      try await until { (try? await ControlClient(directory: path).version()) == 1 }
      let attached = try await Self.open(path)
      second = attached
      #expect(attached.signedIn == owner.signedIn)
      let shared = try await blocking { try attached.store(Self.store) }
      store = shared
      #expect(shared.dictionary == ["theme": "dark"])
      var heard = ownersStore.changes.makeAsyncIterator()
      try await shared.commit { $0.set(12, forKey: "size") }
      #expect(await heard.next()?.reason == .serverChange)
      #expect(ownersStore.value(forKey: "size") == 12)
      group.cancelAll()
    }
    try owner.close()
    // Nobody has the directory open: whoever runs takes it.
    let accounts = try #require(second)
    let shared = try #require(store)
    try await AccountsTests.serving(accounts) {
      try await until { (try? await accounts.report().isRunning) == true }
      try await shared.commit { $0.set("light", forKey: "theme") }
    }
    #expect(shared.dictionary == ["theme": "light", "size": 12])
    try await blocking { try accounts.close() }
    let node = try await Nodes.open(path)
    #expect(try node.store(Self.store).dictionary == ["theme": "light", "size": 12])
    try node.close()
  }
}
