import Foundation
import Kith
import KithTestSupport
import Testing

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
