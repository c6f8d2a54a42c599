import Foundation
import Kith
import KithProxy
import KithTestSupport
import Testing

/// Two devices that meet only over a bad network.
@Suite struct BadNetworkTests {
  /// Two devices whose only way to each other is a bad network: after a cut both show the same.
  @Test(.timeLimit(.minutes(2))) func `a theme set during a cut arrives after it`() async throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: directory) }
    let (laptopPath, phonePath) = try await pairedDevices(in: directory)
    let laptop = try await open(laptopPath)
    defer { try? laptop.close() }
    let here = try laptop.store("com.example.Reader")

    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await laptop.run() }
      try await eventually { !laptop.listeningAddresses.isEmpty }
      let port = try #require(laptop.listeningAddresses.first?.split(separator: ":").last)

      var network = FaultyProxy.Configuration()
      network.sourceHost = "127.0.0.9"  // Where the laptop cannot dial the phone back.
      try await FaultyProxy.with(target: try #require(Int(port)), configuration: network) { proxy in
        let phone = try await open(phonePath, peers: ["127.0.0.1:\(proxy.port)"])
        defer { try? phone.close() }
        let there = try phone.store("com.example.Reader")
        try await withThrowingTaskGroup(of: Void.self) { phoneGroup in
          phoneGroup.addTask { try await phone.run() }
          try await eventually { !phone.status.peers.isEmpty }

          proxy.set(.init(delay: .milliseconds(50)))
          try here.set("light", forKey: "theme")
          try await eventually { there.value(forKey: "theme") == "light" }

          proxy.cut()
          try await eventually { phone.status.peers.isEmpty }
          try here.set("dark", forKey: "theme")
          try there.set(14, forKey: "fontSize")
          #expect(there.value(forKey: "theme") == "light")

          proxy.mend()
          try await eventually { there.dictionary == here.dictionary }
          #expect(there.dictionary == ["theme": "dark", "fontSize": 14])
          phoneGroup.cancelAll()
        }
      }
    }
  }

  /// The device exists all the same.
  @Test(.timeLimit(.minutes(1))) func `a joiner tells that the inviter fell silent at the end`()
    async throws
  {
    let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: directory) }
    let (first, second) = (directory.path + "/laptop", directory.path + "/phone")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    _ = try Node.createAccount(directory: first, name: "laptop")
    let laptop = try await open(first)
    defer { try? laptop.close() }
    let (invitations, continuation) = AsyncStream<OpenInvitation>.makeStream()
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        _ = try? await laptop.invite {
          continuation.yield($0)
          continuation.finish()
        } onJoinRequest: { _ in
          true
        }
        continuation.finish()
      }
      for await invitation in invitations {
        let error = await #expect(throws: KithError.self) {
          try await joinThroughSilence(invitation, in: second)
        }
        #expect(error?.code == .timedOut)
      }
      group.cancelAll()
    }
    let phone = try await open(second)
    #expect(phone.account == laptop.account)
    try phone.close()
  }

  private func joinThroughSilence(
    _ invitation: OpenInvitation, in directory: String
  ) async throws {
    let port = try #require(invitation.addresses.first?.split(separator: ":").last)
    try await FaultyProxy.with(target: try #require(Int(port))) { proxy in
      var options = Node.JoinOptions()
      options.timeout = .milliseconds(200)
      _ = try await Node.join(
        directory: directory, name: "phone", code: invitation.token,
        address: "127.0.0.1:\(proxy.port)", options: options,
        made: { _ async throws(KithError) in proxy.abandon() }
      ) { _, _ in true }
    }
  }

  /// Makes an account with two devices.
  private func pairedDevices(in directory: URL) async throws -> (String, String) {
    let (first, second) = (directory.path + "/laptop", directory.path + "/phone")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    _ = try Node.createAccount(directory: first, name: "laptop")
    let laptop = try await open(first)
    defer { try? laptop.close() }
    let (tokens, continuation) = AsyncStream<String>.makeStream()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await laptop.run() }
      group.addTask {
        try await laptop.invite {
          continuation.yield($0.token)
        } onJoinRequest: { _ in
          true
        }
      }
      for await token in tokens {
        _ = try await Node.join(directory: second, name: "phone", code: token) { _, _ in true }
        break
      }
      group.cancelAll()
    }
    return (first, second)
  }

  private func open(_ directory: String, peers: [String] = []) async throws -> Node {
    var configuration = Node.Configuration(directory: directory)
    (configuration.hosts, configuration.port) = (["127.0.0.1"], 0)
    configuration.peers = peers
    configuration.servesControlSocket = false
    configuration.discoversPeers = false
    return try await Node.open(configuration)
  }
}
