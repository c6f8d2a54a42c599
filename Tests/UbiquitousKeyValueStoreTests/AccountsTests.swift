import Foundation
import Kith
import KithTestSupport
import Logging
import Testing

@testable import UbiquitousKeyValueStore

extension IdentityTests {
  /// A program of Apple's class on real accounts, in a directory of its own.
  private struct Program {
    let shared: SharedStore
    let accounts: Accounts
    let store: NSUbiquitousKeyValueStore

    init(_ directory: String) throws {
      let settings = Settings(
        resolving: SettingSources(executable: "/Editor", home: "/"),
        storeIdentifier: StoreIdentifier("com.example.Editor"), directory: directory
      ) {
        $0.hosts = ["127.0.0.1"]
        $0.port = 0
        $0.discoversPeers = false
        $0.logger.logLevel = .critical
      }
      accounts = try Accounts(settings.accounts)
      let store = try accounts.store(settings.storeIdentifier.rawValue)
      shared = SharedStore { [accounts, logger = settings.accounts.logger] in
        .init(
          backend: KithBackend(store: store, accounts: accounts), accounts: .success(accounts),
          logger: logger)
      }
      self.store = NSUbiquitousKeyValueStore(shared: shared)
    }
  }

  private func withDirectory(_ body: (String) async throws -> Void) async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "kith-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: path) }
    try await body(path.path(percentEncoded: false))
  }

  @Test(.timeLimit(.minutes(2))) func `signing in and out changes token and view, and is told`()
    async throws
  {
    try await withDirectory { directory in
      let program = try Program(directory + "/program")
      let store = program.store
      #expect(program.shared.identityToken == nil)
      store.set("dark", forKey: "theme")
      #expect(store.synchronize())
      let heard = Heard(store)
      let (told, continuation) = AsyncStream<Void>.makeStream()
      let token = NotificationCenter.default.addObserver(
        forName: .NSUbiquityIdentityDidChange, object: nil, queue: nil
      ) { _ in continuation.yield() }
      defer { NotificationCenter.default.removeObserver(token) }
      var identityChanges = told.makeAsyncIterator()

      _ = try await program.accounts.createAccount(name: "laptop")
      await identityChanges.next()
      let first = try #require(program.shared.identityToken)
      // The values that were written before are the account's first data.
      #expect(store.string(forKey: "theme") == "dark")
      #expect(store.synchronize())
      try await eventually { heard.reasons.contains(3) }

      try await program.accounts.signOut()
      await identityChanges.next()
      #expect(program.shared.identityToken == nil)
      #expect(store.object(forKey: "theme") == nil)
      #expect(store.synchronize())
      try await eventually {
        heard.all.contains { $0.reason == 3 && $0.keys == ["theme"] }
      }

      let account = try #require(program.accounts.known.first)
      #expect(!account.isSignedIn)
      _ = try await program.accounts.createAccount(name: "other")
      await identityChanges.next()
      let other = try #require(program.shared.identityToken)
      #expect(!other.isEqual(first))
      #expect(store.object(forKey: "theme") == nil)
    }
  }

  @Test(.timeLimit(.minutes(2)))
  func `a new device hears which of its early writes lost, and then of each change`() async throws {
    try await withDirectory { directory in
      let home = directory + "/home"
      _ = try Node.createAccount(directory: home, name: "home")
      var configuration = Node.Configuration(directory: home)
      configuration.hosts = ["127.0.0.1"]
      configuration.port = 0
      configuration.servesControlSocket = false
      configuration.discoversPeers = false
      configuration.logger.logLevel = .critical
      let node = try await Node.open(configuration)
      let there = try node.store("com.example.Editor")
      try await there.commit {
        $0.set("dark", forKey: "theme")
        $0.set(12, forKey: "size")
      }
      let program = try Program(directory + "/program")
      let store = program.store
      store.set("default", forKey: "theme")
      store.set("mine", forKey: "own")
      #expect(store.synchronize())
      let heard = Heard(store)

      try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        group.addTask { try await node.run() }
        try await eventually { !node.listeningAddresses.isEmpty }
        let (tokens, continuation) = AsyncStream<String>.makeStream()
        group.addTask {
          try await node.invite {
            continuation.yield($0.token)
            continuation.finish()
          } onJoinRequest: { _ in
            true
          }
        }
        for await token in tokens {
          try await program.accounts.signIn(code: token, name: "laptop") { _, _ in true }
        }
        try await eventually {
          there.value(forKey: "own") == "mine" && store.string(forKey: "theme") == "dark"
        }
        #expect(there.value(forKey: "theme") == "dark")
        #expect(store.longLong(forKey: "size") == 12)
        try await eventually {
          heard.all.contains { $0.reason == 1 && $0.keys?.contains("theme") == true }
        }

        try there.set("light", forKey: "theme")
        try await eventually { store.string(forKey: "theme") == "light" }
        try await eventually { heard.all.last?.reason == 0 }
        #expect(heard.keys.last == ["theme"])
        store.set("sepia", forKey: "theme")
        #expect(store.synchronize())
        try await eventually { there.value(forKey: "theme") == "sepia" }
      }
      try node.close()
    }
  }
}
