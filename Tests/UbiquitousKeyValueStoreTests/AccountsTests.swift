import Foundation
import KithTestSupport
import Logging
import Synchronization
import Testing

@testable import Kith
@testable import UbiquitousKeyValueStore

extension IdentityTests {
  /// A program of Apple's class on real accounts, in a directory of its own.
  private struct Program {
    let shared: SharedStore
    let accounts: Accounts
    let store: NSUbiquitousKeyValueStore

    private struct Weak {
      weak var accounts: Accounts?
    }
    private static let all = Mutex<[Weak]>([])

    /// Returns once none is left: the work for one ends some time after it, and might still tell of its
    /// account.
    static func awaitEnds() async throws {
      try await eventually { all.withLock { $0.allSatisfy { $0.accounts == nil } } }
    }

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
      Self.all.withLock { [accounts] in $0.append(Weak(accounts: accounts)) }
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
    try await Program.awaitEnds()
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

  /// Runs the body beside a device of an account whose store holds some values; the body's `join` has
  /// the program join it.
  private func withHome(
    _ values: [String: PropertyListValue],
    _ body: (
      _ there: KeyValueStore, _ program: Program, _ join: () async throws -> Void
    ) async throws -> Void
  ) async throws {
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
      try await there.commit { for (key, value) in values { $0.set(value, forKey: key) } }
      let program = try Program(directory + "/program")
      try await withThrowingTaskGroup(of: Void.self) { group in
        defer { group.cancelAll() }
        group.addTask { try await node.run() }
        try await eventually { !node.listeningAddresses.isEmpty }
        try await body(there, program) {
          let (tokens, continuation) = AsyncStream<String>.makeStream()
          async let invited = node.invite {
            continuation.yield($0.token)
            continuation.finish()
          } onJoinRequest: { _ in
            true
          }
          for await token in tokens {
            try await program.accounts.signIn(code: token, name: "laptop") { _, _ in true }
          }
          _ = try await invited
        }
      }
      try node.close()
    }
  }

  @Test func `a change of the account is told after what it brought`() async throws {
    let backend = FakeBackend()
    let store = NSUbiquitousKeyValueStore.on(backend)
    #expect(store.synchronize())
    let told = Mutex<[String]>([])
    let center = NotificationCenter.default
    let tokens = [
      center.addObserver(
        forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
        queue: nil
      ) { notification in
        let reason = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey]
        told.withLock { $0.append("\(reason as? Int ?? -1)") }
      },
      center.addObserver(forName: .NSUbiquityIdentityDidChange, object: nil, queue: nil) { _ in
        told.withLock { $0.append("identity") }
      },
    ]
    defer { for token in tokens { center.removeObserver(token) } }
    for reason in [KeyValueStore.ChangeReason.initialSyncChange, .accountChange] {
      backend.tell(KeyValueStore.Change(reason: reason, items: []))
    }
    backend.signIn(.test(1))
    try await eventually { told.withLock { $0.count } == 3 }
    #expect(told.withLock { $0 } == ["1", "3", "identity"])
    // Without a change of the store, it is told too.
    backend.signIn(nil)
    try await eventually { told.withLock { $0.count } == 4 }
    #expect(told.withLock { $0.last } == "identity")
    withExtendedLifetime(store) {}
  }

  /// Calls `body` at each change from elsewhere, with its reason and the words that the store shows.
  private func onWords(
    of store: NSUbiquitousKeyValueStore,
    _ body: @escaping @Sendable (_ reason: Int?, _ stored: [String]) -> Void
  ) -> any NSObjectProtocol {
    NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
    ) { [unowned store] notification in
      body(
        notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
        store.array(forKey: "words") as? [String] ?? [])
    }
  }

  /// A program that unites its words with the account's at the first sync, and reads the store again
  /// when the account changes: as the store or as the system tells it.
  @Test(.timeLimit(.minutes(2)), arguments: [false, true])
  func `a program that reads the store again at a change of identity keeps its own values`(
    readsAtAccountChange: Bool
  ) async throws {
    try await withHome(["words": ["one", "two"]]) { there, program, join in
      let store = program.store
      let memory = Mutex((words: ["three"], readings: 0))
      store.set(["three"], forKey: "words")
      #expect(store.synchronize())
      let center = NotificationCenter.default
      let tokens = [
        onWords(of: store) { [unowned store] reason, stored in
          memory.withLock { memory in
            if reason == NSUbiquitousKeyValueStoreInitialSyncChange {
              memory.words = Set(memory.words).union(stored).sorted()
              store.set(memory.words, forKey: "words")
            } else if reason == NSUbiquitousKeyValueStoreAccountChange, readsAtAccountChange {
              memory.words = stored
            }
          }
        },
        center.addObserver(
          forName: .NSUbiquityIdentityDidChange, object: nil, queue: nil
        ) { [unowned store] _ in
          let stored = store.array(forKey: "words") as? [String] ?? []
          memory.withLock { $0 = (stored, $0.readings + 1) }
        },
      ]
      defer { for token in tokens { center.removeObserver(token) } }
      try await join()
      try await eventually { memory.withLock { $0.readings } == 1 }
      #expect(memory.withLock { $0.words } == ["one", "three", "two"])
      try await eventually { there.value(forKey: "words") == ["one", "three", "two"] }
    }
  }

  /// At both notifications the store shows the account's data, so no order serves also a program that
  /// reads at the first sync, and unites when the account changes. Its lost write can be read.
  @Test(.timeLimit(.minutes(2)))
  func `a program that reads the store at the first sync finds its own value among the refusals`()
    async throws
  {
    try await withHome(["words": ["one", "two"]]) { there, program, join in
      let store = program.store
      let memory = Mutex((words: ["three"], unions: 0))
      store.set(["three"], forKey: "words")
      #expect(store.synchronize())
      let token = onWords(of: store) { [unowned store] reason, stored in
        memory.withLock { memory in
          if reason == NSUbiquitousKeyValueStoreInitialSyncChange {
            memory.words = stored
          } else if reason == NSUbiquitousKeyValueStoreAccountChange {
            memory = (Set(memory.words).union(stored).sorted(), memory.unions + 1)
            store.set(memory.words, forKey: "words")
          }
        }
      }
      defer { NotificationCenter.default.removeObserver(token) }
      try await join()
      try await eventually { memory.withLock { $0.unions } == 1 }
      #expect(memory.withLock { $0.words } == ["one", "two"])
      #expect(store.synchronize())
      #expect(there.value(forKey: "words") == ["one", "two"])
      let refused = program.shared.backend.refusals
      #expect(refused.map(\.reason) == [.initialSync])
      #expect(refused.flatMap(\.writes).map(\.value) == [.array(["three"])])
    }
  }

  @Test(.timeLimit(.minutes(2)))
  func `a new device hears which of its early writes lost, and then of each change`() async throws {
    try await withHome(["theme": "dark", "size": 12]) { there, program, join in
      let store = program.store
      store.set("default", forKey: "theme")
      store.set("mine", forKey: "own")
      #expect(store.synchronize())
      let heard = Heard(store)
      try await join()
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
  }
}
