import Foundation
import KithCore
import KithCrypto
import KithStorage
import KithTestSupport
import NIOPosix
import Testing

@testable import Kith

@Suite(.timeLimit(.minutes(5)))
struct NodeTests {
  @Test func aSecondNodeIsToldWhoHasTheDirectory() async throws {
    let nodes = try await Nodes()
    let error = await #expect(throws: KithError.self) {
      _ = try await Nodes.open(nodes.directory.child("0"))
    }
    #expect(error?.code == .inUse)
    let process = ProcessInfo.processInfo.processIdentifier
    #expect(error?.message.contains("process \(process)") == true)
    try nodes.first.close()
  }

  @Test func whatWasWrittenIsThereAfterOpeningAgain() async throws {
    let nodes = try await Nodes()
    let store = try nodes.first.store("com.example.test")
    try store.set([1, 2], forKey: "list")
    try await store.commit { $0.set(["a": true], forKey: "dictionary") }
    try nodes.first.close()
    #expect(throws: KithError.self) { try store.set(1, forKey: "late") }
    let again = try await Nodes.open(nodes.directory.child("0"))
    let reopened = try again.store("com.example.test")
    #expect(reopened.dictionary == ["list": [1, 2], "dictionary": ["a": true]])
    try again.close()
  }

  @Test func `more addresses of peers than a node takes are refused`() async throws {
    let nodes = try await Nodes()
    let path = nodes.directory.child("0")
    try nodes.first.close()
    // Nobody listens there.
    let peers = (20_001...20_257).map { "127.0.0.1:\($0)" }
    let refused = await #expect(throws: KithError.self) {
      _ = try await Nodes.open(path, peers: peers)
    }
    #expect(refused?.code == .network && refused?.message.contains("at most 256") == true)
    let node = try await Nodes.open(path, peers: Array(peers.dropLast()))
    try await running(node) {
      try await node.meet(peers[0])
      let error = await #expect(throws: KithError.self) { try await node.meet(peers[256]) }
      #expect(error?.code == .network && error?.message.contains("at most 256") == true)
    }
    try node.close()
  }

  /// Opens a node over storage that can be kept waiting.
  private func openHeld(
    _ configuration: Node.Configuration
  ) throws -> (node: Node, storage: FailingStorage) {
    let opened = try DeviceStorage.open(configuration.directory, nil)
    let storage = FailingStorage(opened.storage)
    var entropy = SystemRandom()
    let engine = try Engine(
      account: DeviceStorage.account(of: opened), keys: opened.keys,
      process: ProcessID(entropy.draw()), storage: storage, logger: configuration.logger,
      boot: SystemClock.boot)
    let node = Node(configuration: configuration, engine: engine, opened: opened, staticPeers: [])
    return (node, storage)
  }

  /// Its sessions ended before its last round: the write was durable here, and sent to nobody.
  @Test func `a node that stops sends what it has accepted`() async throws {
    let nodes = try await Nodes()
    let configuration = nodes.first.configuration
    let second = try await running(nodes.first) { try await nodes.join("second", by: nodes.first) }
    try nodes.first.close()
    let (first, storage) = try openHeld(configuration)
    let store = try first.store("com.example.test")
    let other = try second.store("com.example.test")
    try await running(second) {
      try await eventually { isFree(configuration.port) }
      let run = Task { try await first.run() }
      defer { run.cancel() }
      try await first.meetsPeer()
      try store.set("met", forKey: "key")
      try await eventually { other.value(forKey: "key") == "met" }
      storage.hold()
      defer { storage.release() }
      try store.set("last", forKey: "key")
      try await eventually { storage.isHolding }
      run.cancel()
      // Time in which it would end its sessions.
      try await Task.sleep(for: .milliseconds(200))
      storage.release()
      try await run.value
      try await eventually { other.value(forKey: "key") == "last" }
    }
    try first.close()
    try second.close()
  }

  /// It was said to be another account or program.
  @Test func `an address that accepts and says nothing may be a device that hangs`() async throws {
    let nodes = try await Nodes()
    let silent = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try #require(silent.localAddress?.port)
    try await running(nodes.first) {
      let met = try await nodes.first.meet("127.0.0.1:\(port)", waiting: .seconds(60))
      #expect(met.outcome == .notOfAccount)
      #expect(met.reason?.contains("or it hangs") == true)
    }
    try await silent.close()
    try nodes.first.close()
  }

  @Test func badNamesAndPoliciesAreRefused() async throws {
    let nodes = try await Nodes()
    #expect(throws: KithError.self) { try nodes.first.store("") }
    #expect(throws: KithError.self) {
      try nodes.first.store("com.example.test", policy: KeyValueStore.Policy(keys: -1))
    }
    let store = try nodes.first.store("com.example.test")
    let long = String(repeating: "k", count: 65)
    let error = #expect(throws: KithError.self) { try store.set(1, forKey: long) }
    #expect(error?.code == .invalidKey)
    #expect(error?.message.contains("at most 64") == true)
    try nodes.first.close()
  }

  @Test func anAccountIsRegainedWithItsRecoveryKey() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let one = try first.store("com.example.test")
    try one.set("kept", forKey: "key")
    try await running(first, second) {
      let other = try second.store("com.example.test")
      try await eventually { other.value(forKey: "key") == "kept" }
    }
    try await second.store("com.example.test").commit { $0.set("also kept", forKey: "draft") }
    try first.close()
    try second.close()
    #expect(throws: KithError.self) {
      try Node.recoverAccount(
        directory: nodes.directory.child("new"), from: nodes.directory.child("second"),
        recoveryKey: "not a key", name: "new")
    }
    let summary = try Node.recoverAccount(
      directory: nodes.directory.child("new"), from: nodes.directory.child("second"),
      recoveryKey: nodes.recoveryKey, name: "new")
    #expect(summary.account == first.account)
    let regained = try await Nodes.open(nodes.directory.child("new"))
    #expect(
      try regained.store("com.example.test").dictionary == ["draft": "also kept", "key": "kept"])
    #expect(regained.status.devices.map(\.name).sorted() == ["first", "new", "second"])
    try regained.close()
  }

  @Test func whereNoDeviceCanBeMadeTheAccountTakesNoneIn() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let path = nodes.directory.child("open to others")
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    try await running(first) {
      let (tokens, continuation) = AsyncStream<String>.makeStream()
      let invitation = Task {
        try await first.invite {
          continuation.yield($0.token)
          continuation.finish()
        } onJoinRequest: { _ in
          true
        }
      }
      for await token in tokens {
        let error = await #expect(throws: KithError.self) {
          _ = try await Node.join(directory: path, name: "ghost", code: token) { _, _ in true }
        }
        #expect(error?.code == .unsafePermissions)
      }
      invitation.cancel()
      _ = await invitation.result
      #expect(first.status.devices.map(\.name) == ["first"])
    }
    try first.close()
  }

  @Test func aWrongPairingCodeIsToldAndNothingIsMade() async throws {
    let nodes = try await Nodes()
    let path = nodes.directory.child("nobody")
    let error = await #expect(throws: KithError.self) {
      _ = try await Node.join(
        directory: path, name: "nobody", code: "kith1-nonsense"
      ) { _, _ in true }
    }
    #expect(error?.code == .pairingCode)
    await #expect(throws: KithError.self) { _ = try await Nodes.open(path) }
    try nodes.first.close()
  }
}

/// Each reason for which a store shows something else, caused between real nodes
/// (`Docs/Protocol/drafts.md`); `accountChange` is in `AccountsTests`.
@Suite(.timeLimit(.minutes(5)))
struct NodeReasonTests {
  private static let store = "com.example.test"

  @Test func `two offline devices overfill a store, and the loser's program gets its values back`()
    async throws
  {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let policy = KeyValueStore.Policy(totalBytes: 1_000)
    let one = try first.store(Self.store, policy: policy)
    let other = try second.store(Self.store, policy: policy)
    let third = try await running(first, second) {
      try await second.meetsPeer()
      return try await nodes.join("third", by: first)
    }
    let picture = PropertyListValue.data(Data(repeating: 1, count: 600))
    // Published to the third device while the second is away.
    try await running(first, third) {
      _ = try third.store(Self.store, policy: policy)
      try await third.meetsPeer()
      try one.set(picture, forKey: "first's")
      try await eventually { try !one.syncReport.hasUnpublishedWrites }
    }
    let changes = other.changes
    try await other.commit {
      $0.set(picture, forKey: "second's")
      $0.set("with it", forKey: "caption")
    }
    try await running(first, second) { try await eventually { try !other.refusals.isEmpty } }
    #expect(other.dictionary == one.dictionary)
    #expect(other.dictionary.keys.map(\.text) == ["first's"])
    let refusal = try #require(try other.refusals.first)
    #expect(try other.takeRefusals().count == 1)
    #expect(try other.refusals.isEmpty)
    for node in [first, second, third] { try node.close() }
    var reasons: [KeyValueStore.ChangeReason: Set<KeyValueStore.Key>] = [:]
    for await change in changes {
      reasons[change.reason, default: []].formUnion(change.keys)
      reasons[change.reason, default: []].formUnion(change.superseded)
    }
    #expect(reasons[.quotaViolationChange] == ["caption", "second's"])
    #expect(reasons[.externalChange] == ["first's"])
    #expect(refusal.reason == .quota)
    #expect(
      Dictionary(uniqueKeysWithValues: refusal.writes.map { ($0.key, $0.value) }) == [
        "second's": picture, "caption": "with it",
      ])
  }
}

@Suite(.timeLimit(.minutes(2)))
struct DiscoveryTests {
  @Test func nodesOfOneHostFindEachOtherWithoutAnyAddress() async throws {
    let nodes = try await Nodes()
    let joined = try await running(nodes.first) {
      [try await nodes.join("second", by: nodes.first)]
    }
    for node in joined + [nodes.first] { try node.close() }
    let first = try await Nodes.open(nodes.directory.child("0"), discoversPeers: true)
    let second = try await Nodes.open(nodes.directory.child("second"), discoversPeers: true)
    let stores = (try first.store("com.example.App"), try second.store("com.example.App"))
    try await running(first, second) {
      try stores.0.set("dark", forKey: "theme")
      try await eventually { stores.1.value(forKey: "theme") == "dark" }
      try stores.1.set(12, forKey: "size")
      try await eventually { stores.0.value(forKey: "size") == 12 }
      try await eventually {
        first.status.discovery?.neighbours.map(\.device) == [second.device]
          || second.status.discovery?.neighbours.map(\.device) == [first.device]
      }
      // Nodes that listen on loopback alone are heard there alone.
      for node in [first, second] {
        let links = try #require(node.status.discovery?.links)
        #expect(links == [.init(interface: "lo", isLoopback: true, family: "IPv4")])
      }
    }
    #expect(first.status.discovery == nil)
    try first.close()
    try second.close()
  }

  @Test func aNodeThatMayNotDiscoverIsSilent() async throws {
    let nodes = try await Nodes()
    let store = try nodes.first.store("com.example.App")
    try await running(nodes.first) {
      try store.set(1, forKey: "key")
      #expect(nodes.first.status.discovery == nil)
    }
    try nodes.first.close()
  }
}

/// More nodes than are all connected to all.
@Suite(.timeLimit(.minutes(5)))
struct ManyNodesTests {
  @Test func `a change on one of ten nodes is on all, and it knows`() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let others = try await running(first) {
      var others: [Node] = []
      for number in 1..<10 { others.append(try await nodes.join("node\(number)", by: first)) }
      return others
    }
    try await running(all: [first] + others) {
      for node in others { try await node.meetsPeer() }
      let writer = others[4]
      let one = try writer.store("com.example.test")
      try one.set("dark", forKey: "theme")
      let report = try await one.waitUntilSynced(timeout: .seconds(60))
      #expect(report.isComplete)
      #expect(report.complete.count == 9)
      for node in [first] + others {
        let store = try node.store("com.example.test")
        #expect(store.value(forKey: "theme") == "dark")
      }
    }
    for node in [first] + others { try node.close() }
  }
}
