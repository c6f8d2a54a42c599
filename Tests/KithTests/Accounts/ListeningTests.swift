import Foundation
import KithTestSupport
import Testing

@testable import Kith

/// The errors that a program that serves its accounts gets if it cannot listen.
@Suite(.timeLimit(.minutes(5)))
struct ListeningTests {
  private let lines = Journal.Lines()

  private func accounts(_ path: String, host: String, port: UInt16) async throws -> Accounts {
    var configuration = Accounts.Configuration(directory: path)
    configuration.hosts = [host]
    configuration.port = port
    configuration.discoversPeers = false
    configuration.logger = lines.logger
    let accounts = try Accounts(configuration)
    try await accounts.createAccount(name: "one")
    return accounts
  }

  private func listening(_ accounts: Accounts) -> [String] {
    guard case .own(let node) = accounts.state.withLock({ $0.active }).kind else { return [] }
    return node.listeningAddresses
  }

  @Test func `accounts whose port is taken use another one, and log it`() async throws {
    let nodes = try await Nodes()
    let taken = nodes.first.configuration.port
    let accounts = try await accounts(
      nodes.directory.child("a"), host: "127.0.0.1", port: taken)
    try await running(nodes.first) {
      try await AccountsTests.serving(accounts) {
        try await eventually { !self.listening(accounts).isEmpty }
        let used = try #require(self.listening(accounts).first?.split(separator: ":").last)
        #expect(used != "\(taken)")
        let said = self.lines.all.filter { $0.contains("the port is taken") }
        #expect(said.count == 1)
        #expect(said.first?.contains("\(taken)") == true && said.first?.contains(used) == true)
      }
    }
    try accounts.close()
    try nodes.first.close()
  }

  /// `kith_accounts_run()` waits for that.
  @Test func `accounts tell that they serve once they listen, or are attached`() async throws {
    let directory = try TestDirectory()
    let accounts = try await accounts(directory.child("a"), host: "127.0.0.1", port: 0)
    let addresses = try await untilTold(accounts)
    #expect(!addresses.isEmpty)
    try await AccountsTests.serving(accounts) {
      try await eventually { !self.listening(accounts).isEmpty }
      let other = try AccountsTests.open(directory.child("a"))
      let addresses = try await self.untilTold(other)
      #expect(addresses.isEmpty)
      try other.close()
    }
    try accounts.close()
  }

  /// Serves accounts until they tell that they serve, and returns where they listen then.
  private func untilTold(_ accounts: Accounts) async throws -> [String] {
    let (told, telling) = AsyncStream<[String]>.makeStream()
    let running = Task {
      defer { telling.finish() }
      try await accounts.run { telling.yield(self.listening(accounts)) }
    }
    var addresses: [String]?
    for await found in told {
      addresses = found
      break
    }
    running.cancel()
    try await running.value
    return try #require(addresses)
  }

  /// Listening nowhere is no fallback: the program is told, and so is its log.
  @Test func `another error of listening is thrown and logged`() async throws {
    let directory = try TestDirectory()
    let accounts = try await accounts(directory.child("a"), host: "192.0.2.1", port: 4_114)
    let error = await #expect(throws: KithError.self) {
      try await accounts.run { Issue.record("it listens nowhere") }
    }
    #expect(error?.code == .network)
    #expect(error?.message.contains("192.0.2.1 is no address of this host") == true)
    #expect(lines.all.contains { $0.hasPrefix("error:") && $0.contains("192.0.2.1") })
    #expect(!lines.all.contains { $0.contains("taken") })
    try accounts.close()
  }

  @Test func `a node whose port is taken says so, and takes no other`() async throws {
    let nodes = try await Nodes()
    let other = try await Nodes()
    let port = nodes.first.configuration.port
    var configuration = other.first.configuration
    try other.first.close()
    configuration.port = port
    let second = try await Node.open(configuration)
    try await running(nodes.first) {
      let error = await #expect(throws: KithError.self) { try await second.run() }
      #expect(error?.code == .network)
      #expect(
        error?.message
          == "Cannot listen: port \(port) is taken. Choose another port, or stop the program that "
          + "listens there.")
      #expect(error?.localizedDescription == error?.description)
    }
    try second.close()
    try nodes.first.close()
  }
}
