import Dispatch
import Foundation
import KithCrypto
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

/// ``Accounts`` lists and changes the devices of the account, in the program that has the
/// directory open and in one that is attached to it.
@Suite(.timeLimit(.minutes(5)))
struct AccountsDevicesTests {
  private static let store = "com.example.test"

  /// Two accounts objects in directories of their own, the second joined by the first's invitation.
  private static func pair(
    _ inviter: Accounts, _ joiner: Accounts, name: String, staying: Bool = true
  ) async throws {
    let (tokens, continuation) = AsyncStream<String>.makeStream()
    async let invited = inviter.invite(addresses: ["127.0.0.1"]) { invitation in
      #expect(!invitation.code.isEmpty)
      continuation.yield(invitation.token)
      continuation.finish()
      for await candidate in invitation.candidates where candidate.device.name == name {
        candidate.accept()
        guard staying else { return }
      }
    }
    for await token in tokens {
      try await joiner.signIn(code: token, name: name) { _, _ in true }
    }
    let device = try await invited
    #expect(try await inviter.status().devices.contains { $0.id == device && $0.name == name })
  }

  @Test func `devices are invited, listed, renamed and revoked`() async throws {
    let directory = try TestDirectory()
    let laptop = try AccountsTests.open(directory.child("laptop"))
    #expect(try await laptop.status().devices.isEmpty, "nobody is signed in")
    let error = await #expect(throws: KithError.self) {
      try await laptop.invite { _ in }
    }
    #expect(error?.code == .missing)
    try await laptop.createAccount(name: "laptop")
    try laptop.store(Self.store).set("dark", forKey: "theme")
    let desktop = try AccountsTests.open(directory.child("desktop"))
    try await AccountsTests.serving(laptop) {
      // An invitation names the addresses on which its device listens.
      try await eventually { (try? await laptop.status().listening.isEmpty) == false }
      try await AccountsTests.serving(desktop) {
        try await Self.pair(laptop, desktop, name: "desktop")
        try await desktop.meetsPeer()
        #expect(try desktop.store(Self.store).value(forKey: "theme") == "dark")
        // Told by the statuses, without asking again and again.
        for await status in laptop.statusUpdates
        where status.devices.count == 2 && status.peers.contains(where: \.isExchanging) { break }
        let devices = try await laptop.status().devices
        #expect(Set(devices.map(\.name)) == ["laptop", "desktop"])
        let other = try #require(devices.first { !$0.isThisDevice })
        #expect(try await laptop.dependents(of: other.id).isEmpty)
        try await laptop.rename(other.id, to: "studio")
        try await eventually { try await desktop.status().devices.contains { $0.name == "studio" } }
        try await laptop.revoke(other.id, keeping: [])
        #expect(try await laptop.status().devices.first { $0.id == other.id }?.isMember == false)
        for await status in desktop.statusUpdates where !status.problems.isEmpty { break }
      }
    }
    try laptop.close()
    await #expect(throws: KithError.self) { try await laptop.currentNodes() }
    try desktop.close()
  }

  @Test func `a candidate that is released is declined, also if the invitation ends with that`()
    async throws
  {
    let directory = try TestDirectory()
    let laptop = try AccountsTests.open(directory.child("laptop"))
    try await laptop.createAccount(name: "laptop")
    let desktop = try AccountsTests.open(directory.child("desktop"))
    try await AccountsTests.serving(laptop) {
      try await eventually { (try? await laptop.status().listening.isEmpty) == false }
      let (tokens, continuation) = AsyncStream<String>.makeStream()
      let inviting = Task {
        try await laptop.invite(addresses: ["127.0.0.1"]) { invitation in
          continuation.yield(invitation.token)
          continuation.finish()
          for await _ in invitation.candidates { return }
        }
      }
      for await token in tokens {
        let refused = await #expect(throws: KithError.self) {
          try await desktop.signIn(code: token, name: "desktop") { _, _ in true }
        }
        #expect(refused?.code == .declined, "\(String(describing: refused))")
      }
      let error = await #expect(throws: KithError.self) { try await inviting.value }
      #expect(error?.code == .declined, "\(String(describing: error))")
    }
    try laptop.close()
    try desktop.close()
  }

  /// Nobody released it, and the call hung for ever.
  @Test func `a candidate that comes as the invitation's body returns is asked about by nobody`()
    async
  {
    let asking = Accounts.Invitation.Asking()
    let (answers, question) = AsyncStream<Bool>.makeStream()
    asking.end()
    #expect(!asking.begin(question))
    await asking.untilNobodyAsks()

    let asked = Accounts.Invitation.Asking()
    #expect(asked.begin(question))
    asked.end()
    let answer = await answers.first { _ in true }
    #expect(answer == nil)
    async let isOver: Void = asked.untilNobodyAsks()
    asked.candidateHasGone()
    await isOver
  }

  /// It kept its port, and its code was shown and announced, for ten minutes.
  @Test func `an invitation ends when its account is signed out`() async throws {
    let directory = try TestDirectory()
    let accounts = try AccountsTests.open(directory.child("a"))
    try await accounts.createAccount(name: "laptop")
    let shown = Mutex<[String]>([])
    let error = await #expect(throws: KithError.self) {
      try await accounts.invite(addresses: ["127.0.0.1"]) { invitation in
        shown.withLock { $0 = invitation.addresses }
        try await accounts.signOut()
        for await _ in invitation.candidates {}
      }
    }
    #expect(error?.code == .closed, "\(String(describing: error))")
    let text = try #require(shown.withLock { $0.first?.split(separator: ":").last })
    let port = try #require(UInt16(text))
    // Another test may have it now, for a moment.
    try await eventually { isFree(port) }
    try accounts.close()
  }

  @Test func `a status is told after a write that stays on this device`() async throws {
    let directory = try TestDirectory()
    let accounts = try AccountsTests.open(directory.child("a"))
    try await accounts.createAccount(name: "laptop")
    let store = try accounts.store(Self.store)
    @Sendable func bytes(_ status: NodeStatus) -> Int {
      status.stores.first { $0.identifier == store.identifier }?.usage.bytes ?? 0
    }
    try await AccountsTests.serving(accounts) {
      let (empty, isEmpty) = AsyncStream<Void>.makeStream()
      async let told: Void = {
        for await status in accounts.statusUpdates {
          if bytes(status) > 0 { break }
          isEmpty.yield()
        }
      }()
      for await _ in empty { break }
      try store.set("dark", forKey: "theme")
      await told
    }
    try accounts.close()
  }

  @Test func `a change of the stores' node blocks no open store and no thread of the pool`()
    async throws
  {
    let directory = try TestDirectory()
    let accounts = try AccountsTests.open(directory.child("a"))
    try await accounts.createAccount(name: "laptop")
    let store = try accounts.store(Self.store)
    let (begun, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    async let isInTime = SharedDirectoryTests.blocking {
      accounts.switchLock.withLock { _ in
        begun.signal()
        return end.wait(timeout: .now() + 20) == .success
      }
    }
    try await SharedDirectoryTests.blocking { begun.wait() }
    try await withThrowingTaskGroup(of: Int.self) { group in
      // More than the pool has threads.
      for _ in 0..<64 {
        group.addTask { try await accounts.status().devices.count }
      }
      #expect(try accounts.store(Self.store) === store)
      try await Task.sleep(for: .milliseconds(100))
      end.signal()
      for try await count in group { #expect(count == 1) }
    }
    #expect(try await isInTime)
    try accounts.close()
  }

  @Test func `the passphrase is asked for, and used, on no thread of the pool`() async throws {
    let directory = try TestDirectory()
    let asked = Mutex<[Bool]>([])
    func open(_ name: String) throws -> Accounts {
      var configuration = Accounts.Configuration(directory: directory.child(name))
      configuration.hosts = ["127.0.0.1"]
      configuration.port = 0
      configuration.discoversPeers = false
      configuration.passphrase = { () throws(KithError) in
        let isInTask = withUnsafeCurrentTask { $0 != nil }
        asked.withLock { $0.append(isInTask) }
        var bytes = Array("correct horse".utf8)
        return Passphrase(zeroing: &bytes)
      }
      return try Accounts(configuration)
    }
    let (laptop, desktop) = (try open("laptop"), try open("desktop"))
    try await laptop.createAccount(name: "laptop")
    #expect(asked.withLock { $0.count } >= 1)
    try await AccountsTests.serving(laptop) {
      try await eventually { (try? await laptop.status().listening.isEmpty) == false }
      asked.withLock { $0.removeAll { !$0 } }
      try await Self.pair(laptop, desktop, name: "desktop")
    }
    #expect(asked.withLock { !$0.isEmpty && $0.allSatisfy { !$0 } })
    try laptop.close()
    try desktop.close()
  }

  @Test func `a program that is attached does the same`() async throws {
    let directory = try TestDirectory()
    let owner = try AccountsTests.open(directory.child("a"))
    try await owner.createAccount(name: "laptop")
    try await AccountsTests.serving(owner) {
      try await eventually { (try? await owner.status().isRunning) == true }
      let guest = try await SharedDirectoryTests.blocking {
        try AccountsTests.open(directory.child("a"))
      }
      let desktop = try AccountsTests.open(directory.child("desktop"))
      try await AccountsTests.serving(desktop) {
        try await Self.pair(guest, desktop, name: "desktop", staying: false)
        try await eventually { try await owner.status().devices.count == 2 }
        for await status in guest.statusUpdates where status.devices.count == 2 { break }
        var (seen, known) = (try await guest.status().devices, try await owner.status().devices)
        try await eventually {
          (seen, known) = (try await guest.status().devices, try await owner.status().devices)
          return seen == known
        }
        #expect(seen.count == 2)
        let other = try #require(seen.first { !$0.isThisDevice })
        try await guest.rename(other.id, to: "studio")
        #expect(try await owner.status().devices.contains { $0.name == "studio" })
        try await guest.meetsPeer()
        try await guest.revoke(other.id, keeping: [])
        #expect(try await owner.status().devices.first { $0.id == other.id }?.isMember == false)
      }
      try desktop.close()
      try await SharedDirectoryTests.blocking { try guest.close() }
    }
    try owner.close()
  }
}
