import Foundation
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

/// Several programs with one directory: each has ``Accounts`` of its own, as two processes would.
@Suite(.timeLimit(.minutes(5)))
struct SharedDirectoryTests {
  private static let store = "com.example.test"

  /// A directory with an account, and the program that has it open.
  private static func owned() async throws -> (directory: TestDirectory, owner: Accounts) {
    let directory = try TestDirectory()
    let owner = try AccountsTests.open(directory.child("a"))
    try await owner.createAccount(name: "laptop")
    return (directory, owner)
  }

  /// A second program, which attaches to the first, and its store.
  private static func attach(
    to directory: TestDirectory
  ) async throws -> (program: Accounts, store: KeyValueStore) {
    try await blocking {
      let program = try AccountsTests.open(directory.child("a"))
      return (program, try program.store(store))
    }
  }

  @Test func `two programs share a store, and each hears what the other wrote`() async throws {
    let (directory, first) = try await Self.owned()
    let one = try first.store(Self.store)
    try one.set("dark", forKey: "theme")
    try await AccountsTests.serving(first) {
      let (second, other) = try await Self.attach(to: directory)
      #expect(second.signedIn == first.signedIn)
      #expect(other.value(forKey: "theme") == "dark")
      let (toOne, toOther) = (one.changes, other.changes)
      try await Self.blocking { try other.set("light", forKey: "theme") }
      #expect(other.value(forKey: "theme") == "light")
      try await Self.blocking { try other.flush() }
      #expect(one.value(forKey: "theme") == "light")
      try await one.commit { $0.set(12, forKey: "size") }
      try await eventually { other.value(forKey: "size") == 12 }
      var atOne = toOne.makeAsyncIterator()
      let heard = try #require(await atOne.next())
      #expect(heard.reason == .externalChange)
      #expect(heard.items == [.init(key: "theme", old: "dark", new: "light")])
      var atOther = toOther.makeAsyncIterator()
      let heardToo = try #require(await atOther.next())
      #expect(heardToo.reason == .externalChange)
      #expect(heardToo.items == [.init(key: "size", old: nil, new: 12)])
      #expect(try await second.status() == (try await first.status()))
      try await Self.blocking { try second.close() }
    }
    try first.close()
  }

  @Test func `without an account too`() async throws {
    let directory = try TestDirectory()
    let first = try AccountsTests.open(directory.child("a"))
    try await AccountsTests.serving(first) {
      try await eventually { (try? await first.status().isRunning) == true }
      let second = try await Self.blocking { try AccountsTests.open(directory.child("a")) }
      #expect(second.signedIn == nil)
      try await Self.blocking { try second.store(Self.store).set("local", forKey: "theme") }
      try await Self.blocking { try second.close() }
      #expect(try first.store(Self.store).value(forKey: "theme") == "local")
    }
    try first.close()
  }

  @Test func `a program that starts while a node ends opens the directory itself`() async throws {
    let directory = try TestDirectory()
    let path = directory.child("a")
    try AccountsTests.open(path).close()
    let node = try ScriptedNode(at: path + "/local/control")
    async let opened = Self.blocking {
      let accounts = try AccountsTests.open(path)
      return (accounts, try accounts.store("com.example.test"))
    }
    try await Self.blocking {
      try node.greet()
      guard case .open = try node.next().call else { throw TimedOut() }
      try node.say(0, .goodbye(isYielding: false))
      node.stop()
    }
    let (accounts, store) = try await opened
    #expect(accounts.node != nil)
    try store.set("kept", forKey: "k")
    try accounts.close()
    let again = try AccountsTests.open(path)
    #expect(try again.store("com.example.test").value(forKey: "k") == "kept")
    try again.close()
  }

  /// One of them takes the place of the node, or the service does, and all others use that.
  @Test func `stores that are opened at once while a node ends are all there`() async throws {
    let directory = try TestDirectory()
    let path = directory.child("a")
    try AccountsTests.open(path).close()
    let node = try ScriptedNode(at: path + "/local/control")
    async let opened = Self.blocking { try AccountsTests.open(path) }
    try await Self.blocking { try node.greet() }
    let accounts = try await opened
    try await AccountsTests.serving(accounts) {
      async let stores = withThrowingTaskGroup(of: Void.self) { group in
        for name in 0..<8 {
          group.addTask { _ = try await Self.blocking { try accounts.store("store.\(name)") } }
        }
        try await group.waitForAll()
      }
      try await Self.blocking {
        while true { if case .open = try node.next().call { break } }
        try node.say(0, .goodbye(isYielding: false))
        node.stop()
      }
      try await stores
    }
    try accounts.close()
  }

  /// A failed opening was logged alone. The next write made the node close the connection.
  @Test func `a store that the next node does not open throws why, and others go on`() async throws
  {
    let directory = try TestDirectory()
    let path = directory.child("a")
    let owner = try AccountsTests.open(path)
    let attached = Mutex<Accounts?>(nil)
    try await AccountsTests.serving(owner) {
      let program = try await Self.blocking { try AccountsTests.open(path) }
      attached.withLock { $0 = program }
      for name in ["one", "two"] {
        try await Self.blocking { try program.store(name).set("old", forKey: "k") }
      }
    }
    let opened = attached.withLock { $0 }
    let program = try #require(opened)
    try owner.close()
    // As an upgraded program would.
    let upgraded = try AccountsTests.open(path)
    _ = try upgraded.store("one", policy: .init(totalBytes: 5_000))
    try await AccountsTests.serving(upgraded) {
      let (one, two) = try await Self.blocking {
        (try program.store("one"), try program.store("two"))
      }
      try await Self.blocking { try two.set("new", forKey: "k") }
      for _ in 0..<2 {
        await #expect(throws: KithError.self) {
          try await Self.blocking {
            do {
              try one.set("new", forKey: "k")
            } catch let error as KithError {
              #expect(error.code == .invalidPolicy)
              throw error
            }
          }
        }
      }
      let error = await #expect(throws: KithError.self) {
        try await one.commit { $0.set("new", forKey: "k") }
      }
      #expect(error?.code == .invalidPolicy)
      try await Self.blocking { try two.set("newer", forKey: "k") }
      #expect(try upgraded.store("two").value(forKey: "k") == "newer")
      try await Self.blocking { try program.close() }
    }
    try upgraded.close()
  }

  @Test func `a store that could not be opened is opened before the next write`() async throws {
    let directory = try TestDirectory()
    let path = directory.child("a")
    try AccountsTests.open(path).close()
    let first = try ScriptedNode(at: path + "/local/control")
    async let opened = Self.blocking {
      let accounts = try AccountsTests.open(path)
      return (accounts, try accounts.store("com.example.test"))
    }
    try await Self.blocking {
      try first.greet()
      try first.say(try first.next().id, .answer(.values([])))
    }
    let (accounts, store) = try await opened
    try FileManager.default.removeItem(atPath: path + "/local/control")
    let second = try ScriptedNode(at: path + "/local/control")
    try first.say(0, .goodbye(isYielding: false))
    first.stop()
    async let written: Void = Self.blocking { try store.set("new", forKey: "k") }
    try await Self.blocking {
      try second.greet()
      try second.say(try second.next().id, .failure(KithError(.timedOut, "It has no time.")))
      let open = try second.next()
      guard case .open = open.call else { throw TimedOut() }
      try second.say(open.id, .answer(.values([try .encoding("theirs", forKey: "other")])))
      let write = try second.next()
      guard case .write = write.call else { throw TimedOut() }
      try second.say(write.id, .answer(.done))
    }
    try await written
    #expect(store.value(forKey: "other") == "theirs")
    async let closed: Void = Self.blocking { try accounts.close() }
    try await Self.blocking { try second.say(try second.next().id, .answer(.done)) }
    try await closed
  }

  @Test func `an attached program takes over when the other ends, and loses nothing`() async throws
  {
    let (directory, first) = try await Self.owned()
    let ending = AsyncStream<Void>.makeStream()
    let served = Task {
      try await AccountsTests.serving(first) {
        for await _ in ending.stream { return }
      }
    }
    try await eventually { (try? await first.status().isRunning) == true }
    let (second, store) = try await Self.attach(to: directory)
    try await Self.blocking { try store.set(1, forKey: "before") }
    try await Self.blocking { try store.flush() }
    try await AccountsTests.serving(second) {
      try await withThrowingTaskGroup(of: Int64?.self) { group in
        let hasEnded = Mutex(false)
        group.addTask {
          var number: Int64 = 0
          while !Task.isCancelled {
            number += 1
            try await store.commit { $0.set(.integer(number), forKey: "number") }
          }
          return number
        }
        group.addTask {
          // As a program of Apple's class does, which ends if this fails.
          try await Self.blocking {
            var number: Int64 = 0
            while !hasEnded.withLock({ $0 }) {
              number += 1
              try store.set(.integer(number), forKey: "flushed")
              try store.flush()
            }
          }
          return nil
        }
        try await eventually {
          store.value(forKey: "number") != nil && store.value(forKey: "flushed") != nil
        }
        ending.continuation.yield()
        try await served.value
        try first.close()
        // The directory is the second's now.
        try await eventually {
          if case .own = second.state.withLock({ $0.active.kind }) { true } else { false }
        }
        hasEnded.withLock { $0 = true }
        group.cancelAll()
        var numbers: [Int64?] = []
        for try await number in group { numbers.append(number) }
        let last = try #require(numbers.compactMap(\.self).first)
        #expect(store.value(forKey: "number") == .integer(last))
      }
    }
    #expect(store.value(forKey: "before") == 1)
    let last = store.value(forKey: "number")
    try await Self.blocking { try second.close() }
    let again = try AccountsTests.open(directory.child("a"))
    #expect(try again.store(Self.store).value(forKey: "number") == last)
    #expect(try again.store(Self.store).value(forKey: "before") == 1)
    try again.close()
  }

  @Test func `taking over tells nothing, for nothing shows otherwise`() async throws {
    let (directory, first) = try await Self.owned()
    let second = Mutex<Accounts?>(nil)
    try await AccountsTests.serving(first) {
      try await eventually { (try? await first.status().isRunning) == true }
      let (accounts, store) = try await Self.attach(to: directory)
      for number in 0..<20 {
        try await store.commit { $0.set(.integer(Int64(number)), forKey: "k\(number)") }
      }
      second.withLock { $0 = accounts }
    }
    try first.close()
    // Nobody serves it: who writes next has the directory opened.
    let accounts = try #require(second.withLock { $0 })
    let store = try accounts.store(Self.store)
    let changes = store.changes
    try await Self.blocking {
      try store.set("after", forKey: "k0")
      try store.flush()
    }
    #expect(accounts.state.withLock { if case .own = $0.active.kind { true } else { false } })
    #expect(store.dictionary.count == 20 && store.value(forKey: "k0") == "after")
    try accounts.close()
    for await change in changes { Issue.record("told \(change)") }
  }

  @Test func `all follow whoever of them signs in or out`() async throws {
    let directory = try TestDirectory()
    let first = try AccountsTests.open(directory.child("a"))
    let one = try first.store(Self.store)
    try await AccountsTests.serving(first) {
      try await eventually { (try? await first.status().isRunning) == true }
      let (second, other) = try await Self.attach(to: directory)
      try await Self.blocking { try other.set("local", forKey: "theme") }
      try await Self.blocking { try other.flush() }
      var changes = other.changes.makeAsyncIterator()
      try await AccountsTests.serving(second) {
        // By the one that has the directory open.
        try await first.createAccount(name: "laptop")
        try await eventually { second.signedIn == first.signedIn && second.signedIn != nil }
        try await eventually { other.value(forKey: "theme") == "local" }
        try one.set("dark", forKey: "theme")
        try await eventually { other.value(forKey: "theme") == "dark" }
        // By the one that is attached.
        try await second.signOut()
        try await eventually { first.signedIn == nil && one.dictionary.isEmpty }
        try await Self.blocking { try other.set("local again", forKey: "fresh") }
        try await eventually { one.value(forKey: "fresh") == "local again" }
        try await second.createAccount(name: "another")
        try await eventually { first.signedIn == second.signedIn && first.signedIn != nil }
        try await eventually { one.value(forKey: "fresh") == "local again" }
      }
      var change = await changes.next()
      // If it follows only after the first write in the account.
      if change?.reason == .initialSyncChange { change = await changes.next() }
      #expect(change?.reason == .accountChange)
      #expect(change?.keys == ["theme"])
      try await Self.blocking { try second.close() }
    }
    try first.close()
  }

  @Test func `a directory that is open without a node is said to be in use`() async throws {
    let directory = try TestDirectory()
    let first = try AccountsTests.open(directory.child("a"))
    let error = await #expect(throws: KithError.self) {
      try await Self.blocking { try AccountsTests.open(directory.child("a")) }
    }
    #expect(error?.code == .inUse)
    let process = ProcessInfo.processInfo.processIdentifier
    #expect(error?.message.contains("process \(process)") == true)
    try first.close()
  }

  /// As `kith run`, which does not attach.
  private static func openInsisting(_ path: String) throws -> Accounts {
    var configuration = Accounts.Configuration(directory: path)
    configuration.hosts = ["127.0.0.1"]
    configuration.port = 0
    configuration.discoversPeers = false
    configuration.insistsOnItsOwn = true
    return try Accounts(configuration)
  }

  /// Waits while the accounts exchange their device, which takes seconds.
  private static func isOwner(_ accounts: Accounts) async throws -> Bool {
    try await blocking {
      if case .own = accounts.state.withLock({ $0.active.kind }) { true } else { false }
    }
  }

  private static func isAnyOwner(_ accounts: Accounts...) async throws -> Bool {
    for one in accounts where try await isOwner(one) { return true }
    return false
  }

  @Test func `a node that insists on the directory gets it, and the others attach to it`()
    async throws
  {
    let (directory, first) = try await Self.owned()
    let path = directory.child("a")
    let one = try first.store(Self.store)
    try await AccountsTests.serving(first) {
      try await eventually { (try? await first.status().isRunning) == true }
      let (second, two) = try await Self.attach(to: directory)
      let changes = two.changes
      try await AccountsTests.serving(second) {
        // Twice, as a service that is started again.
        for round in 0..<2 {
          let insistent = try await Self.blocking { try Self.openInsisting(path) }
          #expect(try await Self.isOwner(insistent))
          try await AccountsTests.serving(insistent) {
            // Writes wait for the new owner, and none is lost.
            for (store, key) in [(one, "one"), (two, "two")] {
              try await Self.blocking {
                try store.set(.integer(Int64(round)), forKey: key)
                try store.flush()
              }
            }
            #expect(try await !Self.isAnyOwner(first, second))
            let store = try insistent.store(Self.store)
            let expected = PropertyListValue.integer(Int64(round))
            #expect(store.dictionary == ["one": expected, "two": expected])
            let refused = await #expect(throws: KithError.self) {
              try await Self.blocking { try Self.openInsisting(path) }
            }
            #expect(refused?.code == .inUse)
          }
          try insistent.close()
          // One of the others takes over.
          try await eventually { try await Self.isAnyOwner(first, second) }
        }
        var heard = changes.makeAsyncIterator()
        #expect(await heard.next()?.items == [.init(key: "one", old: nil, new: 0)])
        #expect(await heard.next()?.items == [.init(key: "one", old: 0, new: 1)])
      }
      try await Self.blocking { try second.close() }
    }
    try first.close()
  }

  /// Blocks a thread of its own: in one process the other side needs Swift's.
  static func blocking<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
