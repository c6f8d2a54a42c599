import Foundation
import Logging

@testable import Kith
@testable import KithTerminal

/// Nodes of one account. ``with(_:_:)`` ends them and removes their directories.
final class BenchNodes: Sendable {
  static let store = "bench"

  typealias Opener = @Sendable (Node.Configuration) async throws -> Node

  let root: URL
  private let first: Node
  private let open: Opener

  var sender: Node { first }

  private init(root: URL, first: Node, open: @escaping Opener) {
    self.root = root
    self.first = first
    self.open = open
  }

  static func with<Result: Sendable>(
    _ root: URL, opener open: @escaping Opener = { try await Node.open($0) },
    _ body: (BenchNodes) async throws -> Result
  ) async throws -> Result {
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    let directory = root.appending(path: "first").path
    _ = try Node.createAccount(directory: directory, name: "first")
    let first = try await open(configuration(directory))
    let nodes = BenchNodes(root: root, first: first, open: open)
    return try await nodes.running(first) { try await body(nodes) }
  }

  func running<Result: Sendable>(
    _ node: Node, _ body: () async throws -> Result
  ) async throws -> Result {
    let task = Task { try await node.run() }
    do {
      try await Self.wait("a node to listen") { !node.listeningAddresses.isEmpty }
      let result = try await body()
      task.cancel()
      try await task.value
      try node.close()
      return result
    } catch {
      task.cancel()
      _ = try? await task.value
      try? node.close()
      throw error
    }
  }

  /// Returns a new device, opened and not yet running.
  func join(_ name: String) async throws -> Node {
    let directory = root.appending(path: name).path
    let (tokens, continuation) = AsyncStream.makeStream(of: String.self)
    let inviter = first
    async let invited = inviter.invite {
      continuation.yield($0.token)
      continuation.finish()
    } onJoinRequest: { _ in
      true
    }
    for await token in tokens {
      _ = try await Node.join(directory: directory, name: name, code: token) { _, _ in true }
    }
    _ = try await invited
    var configuration = Self.configuration(directory)
    configuration.peers = first.listeningAddresses
    return try await open(configuration)
  }

  /// Runs other nodes until the body returns, which begins once each has a peer.
  func connected<Result: Sendable>(
    _ others: [Node], _ body: () async throws -> Result
  ) async throws -> Result {
    guard let last = others.last else { return try await body() }
    return try await running(last) {
      try await Self.wait("two nodes to connect") { !last.status.peers.isEmpty }
      return try await connected(others.dropLast(), body)
    }
  }

  static func configuration(_ directory: String) -> Node.Configuration {
    var configuration = Node.Configuration(directory: directory)
    configuration.hosts = ["127.0.0.1"]
    configuration.port = 0
    configuration.discoversPeers = false
    configuration.servesControlSocket = false
    configuration.logger = Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() }
    return configuration
  }

  /// Waits at most 30 seconds.
  static func wait(_ what: String, until holds: () throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(30)
    while try !holds() {
      guard ContinuousClock.now < end else {
        throw CommandFailure(.unreachable, "the bench waited 30 s for \(what)")
      }
      try await Task.sleep(for: .milliseconds(1))
    }
  }
}
