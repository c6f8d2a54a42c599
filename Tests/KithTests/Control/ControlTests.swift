import Foundation
import Synchronization
import Testing

@testable import Kith

@Suite(.timeLimit(.minutes(5)))
struct ControlTests {
  @Test func aClientDoesWhatTheNodeDoes() async throws {
    let nodes = try await Nodes()
    let path = nodes.directory.child("served")
    _ = try Node.createAccount(directory: path, name: "served")
    let node = try await Nodes.open(path, servesControlSocket: true)
    let client = ControlClient(directory: path)
    let absent = await #expect(throws: KithError.self) { try await client.version() }
    #expect(absent?.code == .notRunning)
    try await running(node) {
      try await until { (try? await client.version()) == 1 }
      let mode = try FileManager.default.attributesOfItem(atPath: path + "/control")
      #expect(mode[.posixPermissions] as? Int == 0o600)
      let store = "com.example.test"
      try await client.write([("a", ["x": [1, 2.5, true]]), ("b", "two")], in: store)
      #expect(try await client.value(forKey: "a", in: store) == ["x": [1, 2.5, true]])
      #expect(try await client.value(forKey: "none", in: store) == nil)
      try await client.write([("b", nil)], in: store)
      let shown = try node.store(store).dictionary
      #expect(try await client.values(in: store) == shown)
      let report = try await client.report()
      #expect(report == (try await node.report()))
      #expect(report.devices.map(\.name) == ["served"])
      #expect(try await client.usage(of: store) == (try await node.usage(of: store)))
      #expect(try await client.hiddenEntries(in: store).isEmpty)
      #expect(try await client.refusals(in: store, takingThrough: nil).isEmpty)
      let sync = try await client.synchronize(store, timeout: .seconds(0.1))
      #expect(sync == (try node.store(store).syncReport))
      let error = await #expect(throws: KithError.self) {
        try await client.write([("", 1)], in: store)
      }
      #expect(error?.code == .invalidKey)
    }
    #expect(!FileManager.default.fileExists(atPath: path + "/control"))
    try node.close()
  }

  @Test func aClientWatchesAndInvites() async throws {
    let nodes = try await Nodes()
    let path = nodes.directory.child("served")
    _ = try Node.createAccount(directory: path, name: "served")
    let node = try await Nodes.open(path, servesControlSocket: true)
    let client = ControlClient(directory: path)
    try await running(node) {
      try await until { (try? await client.version()) == 1 }
      let store = try node.store("com.example.test")
      let watched = Watched()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          try? await client.watch("com.example.test") { _ in
            watched.state.withLock { $0.isReady = true }
          } onChange: { change in
            watched.state.withLock { $0.changes.append(change) }
          }
        }
        try await until { watched.state.withLock { $0.isReady } }
        try store.set("new", forKey: "key")
        try await until { watched.state.withLock { !$0.changes.isEmpty } }
        group.cancelAll()
      }
      let change = try #require(watched.state.withLock { $0.changes.first })
      #expect(change.reason == .ownWrite)
      #expect(change.items == [.init(key: "key", old: nil, new: "new")])
      // The code comes over the socket, the answer goes back.
      let (tokens, continuation) = AsyncStream<String>.makeStream()
      async let invited = client.invite {
        continuation.yield($0)
        continuation.finish()
      } onJoinRequest: {
        $0.name == "joiner"
      }
      var token = ""
      for await text in tokens { token = text }
      let summary = try await Node.join(
        directory: nodes.directory.child("joiner"), name: "joiner", token: token)
      #expect(try await invited.device == summary.device)
      #expect(try await client.report().devices.map(\.name).sorted() == ["joiner", "served"])
    }
    try node.close()
    try nodes.first.close()
  }

  @Test func aStaleSocketIsReplacedAndOtherUsersAreRefused() async throws {
    let directory = try TestDirectory()
    let path = directory.child("control")
    let first = try ControlSocket.listen(at: path)
    close(first)
    let second = try ControlSocket.listen(at: path)
    close(second)
    #expect(ControlSocket.isAllowed(geteuid()))
    #expect(!ControlSocket.isAllowed(geteuid() &+ 1))
    let long = "/" + String(repeating: "p", count: 200)
    #expect(throws: KithError.self) { try ControlSocket.listen(at: long) }
  }
}

/// What a watching client has seen.
final class Watched: Sendable {
  struct State {
    var isReady = false
    var changes: [Change] = []
  }

  let state = Mutex(State())
}
