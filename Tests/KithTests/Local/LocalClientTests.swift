import Foundation
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

@Suite(.timeLimit(.minutes(5)))
struct LocalClientTests {
  @Test func aClientDoesWhatTheNodeDoes() async throws {
    let nodes = try await Nodes()
    let path = nodes.directory.child("served")
    _ = try Node.createAccount(directory: path, name: "served")
    let node = try await Nodes.open(path, servesControlSocket: true)
    let client = LocalClient(directory: path)
    let absent = await #expect(throws: KithError.self) { try await client.status() }
    #expect(absent?.code == .notRunning)
    try await running(node) {
      try await eventually { (try? await client.status()) != nil }
      let mode = try FileManager.default.attributesOfItem(atPath: path + "/control")
      #expect(mode[.posixPermissions] as? Int == 0o600)
      let store = "com.example.test"
      try await client.write([("a", ["x": [1, 2.5, true]]), ("b", "two")], in: store)
      #expect(try await client.value(forKey: "a", in: store) == ["x": [1, 2.5, true]])
      #expect(try await client.value(forKey: "none", in: store) == nil)
      try await client.write([("b", nil)], in: store)
      let shown = try node.store(store).dictionary
      #expect(try await client.values(in: store) == shown)
      let report = try await client.status()
      #expect(report == (try await node.status()))
      #expect(report.devices.map(\.name) == ["served"])
      #expect(try await client.usage(of: store) == (try await node.usage(of: store)))
      #expect(try await client.hiddenEntries(in: store).isEmpty)
      #expect(try await client.refusals(in: store, takingThrough: nil).isEmpty)
      let sync = try await client.waitUntilSynced(store, timeout: .seconds(0.1))
      #expect(try sync == node.store(store).syncReport)
      let error = await #expect(throws: KithError.self) {
        try await client.write([("", 1)], in: store)
      }
      #expect(error?.code == .invalidKey)
    }
    #expect(!FileManager.default.fileExists(atPath: path + "/control"))
    try node.close()
  }

  @Test func writesThatExpectAValueLoseNoIncrement() async throws {
    let served = try await Served()
    let store = "com.example.test"
    try await running(served.node) {
      try await eventually { (try? await served.client.status()) != nil }
      let (writers, rounds) = (4, 10)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<writers {
          let node: any NodeAccess = writer == 0 ? served.node : served.client
          group.addTask {
            var done = 0
            while done < rounds {
              let old = try await node.value(forKey: "n", in: store)
              let number: Int64 = if case .integer(let shown)? = old { shown } else { 0 }
              do throws(KithError) {
                try await node.write(
                  [("n", .integer(number + 1))], in: store, expecting: [("n", old)])
                done += 1
              } catch {
                guard error.code == .unexpectedValue, error.key == "n" else { throw error }
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(
        try await served.client.value(forKey: "n", in: store) == .integer(Int64(writers * rounds)))
    }
    try served.node.close()
  }

  @Test func aClientWatchesAndInvites() async throws {
    let nodes = try await Nodes()
    let path = nodes.directory.child("served")
    _ = try Node.createAccount(directory: path, name: "served")
    let node = try await Nodes.open(path, servesControlSocket: true)
    let client = LocalClient(directory: path)
    try await running(node) {
      try await eventually { (try? await client.status()) != nil }
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
        try await eventually { watched.state.withLock { $0.isReady } }
        try store.set("new", forKey: "key")
        try await eventually { watched.state.withLock { !$0.changes.isEmpty } }
        group.cancelAll()
      }
      let change = try #require(watched.state.withLock { $0.changes.first })
      #expect(change.reason == .ownWrite)
      #expect(change.items == [.init(key: "key", old: nil, new: "new")])
      // The code comes over the socket, the answer goes back.
      let (tokens, continuation) = AsyncStream<String>.makeStream()
      async let invited = client.invite {
        continuation.yield($0.token)
        continuation.finish()
      } onJoinRequest: {
        $0.name == "joiner"
      }
      var token = ""
      for await text in tokens { token = text }
      let summary = try await Node.join(
        directory: nodes.directory.child("joiner"), name: "joiner", code: token
      ) { _, _ in true }
      #expect(try await invited.id == summary.device)
      #expect(try await client.status().devices.map(\.name).sorted() == ["joiner", "served"])
    }
    try node.close()
    try nodes.first.close()
  }

  @Test func lookingAtAStoreDoesNotBeginIt() async throws {
    let directory = try TestDirectory()
    let path = directory.child("served")
    _ = try Node.createAccount(directory: path, name: "served")
    let node = try await Nodes.open(path)
    let store = "com.example.typo"
    #expect(try await node.value(forKey: "key", in: store) == nil)
    #expect(try await node.values(in: store).isEmpty)
    #expect(try await node.hiddenEntries(in: store).isEmpty)
    #expect(try await node.refusals(in: store, takingThrough: 1).isEmpty)
    let usage = try await node.usage(of: store)
    #expect(usage.keys == 0 && usage.policy.keys == KeyValueStore.Policy.standard.keys)
    for look in [
      { _ = try await node.waitUntilSynced(store, timeout: .zero) },
      { try await node.watch(store, onValues: { _ in }, onChange: { _ in }) },
    ] as [@Sendable () async throws -> Void] {
      let error = await #expect(throws: KithError.self) { try await look() }
      #expect(error?.code == .unknownStore)
    }
    try await node.write([("key", nil)], in: store)
    let refused = await #expect(throws: KithError.self) {
      try await node.write([("", 1)], in: store)
    }
    #expect(refused?.code == .invalidKey)
    #expect(try await node.status().stores.isEmpty)
    try await node.write([("key", 1)], in: store)
    #expect(try await node.status().stores.map(\.identifier.rawValue) == [store])
    #expect(try await node.values(in: store).count == 1)
    try node.close()
  }

  @Test func anInvitationEndsWithItsClient() async throws {
    let served = try await Served()
    try await running(served.node) {
      try await eventually { (try? await served.client.status()) != nil }
      // More than may be open at once, one after the other.
      for _ in 0..<LocalLimits.lastingConnections * 2 {
        try await eventually {
          let token = Watched()
          let client = Task {
            _ = try? await served.client.invite { _ in
              token.state.withLock { $0.isReady = true }
              withUnsafeCurrentTask { $0?.cancel() }
            } onJoinRequest: { _ in
              true
            }
          }
          await client.value
          return token.state.withLock { $0.isReady }
        }
      }
    }
    try served.node.close()
  }

  @Test func aWaitEndsWithItsClient() async throws {
    let served = try await Served()
    let store = "com.example.test"
    try await running(served.node) {
      try await eventually { (try? await served.client.status()) != nil }
      // Another device that never comes, and so never has it.
      let nodes = try await Nodes()
      try nodes.first.close()
      try await nodes.join("away", by: served.node).close()
      try await served.client.write([("key", 1)], in: store)
      @Sendable func isFull() async throws -> Bool {
        do {
          _ = try await served.client.waitUntilSynced(store, timeout: .zero)
          return false
        } catch {
          guard error.code == .control else { throw error }
          return error.message.contains("End one")
        }
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<LocalLimits.lastingConnections {
          group.addTask {
            // Tries again, because the check that all are there may have taken the place.
            while !Task.isCancelled {
              _ = try? await served.client.waitUntilSynced(store, timeout: .seconds(3_000))
            }
          }
        }
        try await eventually { try await isFull() }
        #expect(try await served.client.value(forKey: "key", in: store) == 1)
        group.cancelAll()
      }
      try await eventually { try await !isFull() }
    }
    try served.node.close()
  }

  @Test func watchersLeaveRoomForCommands() async throws {
    let served = try await Served()
    let store = "com.example.test"
    _ = try served.node.store(store)
    try await running(served.node) {
      try await eventually { (try? await served.client.status()) != nil }
      let watching = Watched()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<LocalLimits.lastingConnections {
          group.addTask {
            try? await served.client.watch(store) { _ in
              watching.state.withLock { $0.count += 1 }
            } onChange: { _ in
            }
          }
        }
        try await eventually {
          watching.state.withLock { $0.count } == LocalLimits.lastingConnections
        }
        let error = await #expect(throws: KithError.self) {
          try await served.client.watch(store, onValues: { _ in }, onChange: { _ in })
        }
        #expect(error?.code == .control && error?.message.contains("End one") == true)
        try await served.client.write([("key", 1)], in: store)
        #expect(try await served.client.value(forKey: "key", in: store) == 1)
        group.cancelAll()
      }
      // Those that ended make room.
      try await eventually {
        let taken = Watched()
        let task = Task {
          try? await served.client.watch(store) { _ in
            taken.state.withLock { $0.isReady = true }
            withUnsafeCurrentTask { $0?.cancel() }
          } onChange: { _ in
          }
        }
        await task.value
        return taken.state.withLock { $0.isReady }
      }
    }
    try served.node.close()
  }

  @Test func aConnectionClosedWithoutAnAnswerIsNoRiddle() async throws {
    let directory = try TestDirectory()
    let listener = try LocalSocket.listen(at: directory.child("control"))
    defer { close(listener) }
    async let served: Void = onThread {
      let connection = accept(listener, nil, nil)
      var buffer = [UInt8](repeating: 0, count: 4_096)
      _ = read(connection, &buffer, buffer.count)
      close(connection)
    }
    let error = await #expect(throws: KithError.self) {
      try await LocalClient(directory: directory.path).status()
    }
    #expect(error?.code == .control && error?.message.contains("See that it runs") == true)
    try await served
  }

  @Test func clientsThatComeWhileTheNodeEndsAreClosed() async throws {
    let served = try await Served()
    for _ in 0..<10 {
      let isOver = Watched()
      async let knocking: Void = onThread {
        while !isOver.state.withLock({ $0.isReady }) {
          guard let node = try? RemoteNode.connect(to: served.path, attaches: false) else {
            continue
          }
          node.close()
          isOver.state.withLock { $0.count += 1 }
        }
      }
      try await running(served.node) {
        try await eventually { isOver.state.withLock { $0.count } > 20 }
      }
      isOver.state.withLock { $0.isReady = true }
      try await knocking
    }
    try served.node.close()
  }

  @Test func aStaleSocketIsReplacedAndOtherUsersAreRefused() async throws {
    let directory = try TestDirectory()
    let path = directory.child("control")
    let first = try LocalSocket.listen(at: path)
    close(first)
    let second = try LocalSocket.listen(at: path)
    close(second)
    #expect(LocalSocket.isAllowed(geteuid()))
    #expect(!LocalSocket.isAllowed(geteuid() &+ 1))
  }
}

/// A node that serves its control socket.
final class Served: Sendable {
  let directory: TestDirectory
  let path: String
  let node: Node
  let client: LocalClient

  init() async throws {
    directory = try TestDirectory()
    path = directory.child("served")
    _ = try Node.createAccount(directory: path, name: "served")
    node = try await Nodes.open(path, servesControlSocket: true)
    client = LocalClient(directory: path)
  }
}

/// The events that a watching client has seen.
final class Watched: Sendable {
  struct State {
    var isReady = false
    var count = 0
    var changes: [KeyValueStore.Change] = []
  }

  let state = Mutex(State())
}
