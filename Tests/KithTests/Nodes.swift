import Foundation
import Glibc
import Kith
import KithTestSupport
import Logging
import Synchronization

/// Nodes of one account on loopback, in directories of their own, made by the real pairing.
final class Nodes: Sendable {
  let directory: TestDirectory
  let first: Node
  let recoveryKey: String

  init() async throws {
    directory = try TestDirectory()
    let made = try Node.createAccount(directory: directory.child("0"), name: "first")
    recoveryKey = made.recoveryKey
    first = try await Self.open(directory.child("0"))
  }

  static func open(
    _ path: String, port: UInt16? = nil, peers: [String] = [], servesControlSocket: Bool = false,
    discoversPeers: Bool = false
  ) async throws -> Node {
    var configuration = Node.Configuration(directory: path)
    configuration.hosts = ["127.0.0.1"]
    configuration.port = try port ?? freePort()
    configuration.peers = peers
    configuration.servesControlSocket = servesControlSocket
    configuration.discoversPeers = discoversPeers
    var logger = Logger(label: "test")
    logger.logLevel = .error
    configuration.logger = logger
    return try await Node.open(configuration)
  }

  /// Pairs another device with a node that runs, and opens it.
  func join(_ name: String, by inviter: Node) async throws -> Node {
    let path = directory.child(name)
    let (tokens, continuation) = AsyncStream<String>.makeStream()
    async let invited = inviter.invite {
      continuation.yield($0.token)
      continuation.finish()
    } onJoinRequest: { candidate in
      candidate.name == name
    }
    var token = ""
    for await text in tokens { token = text }
    let meeting = Mutex<(inviter: PairingDevice, fingerprint: String)?>(nil)
    let summary = try await Node.join(directory: path, name: name, code: token) { one, other in
      meeting.withLock { $0 = (one, other) }
      return true
    }
    let candidate = try await invited
    precondition(candidate.id == summary.device)
    // Both sides show both fingerprints.
    let met = meeting.withLock { $0 }
    precondition(met?.inviter.id == inviter.device)
    precondition(met?.inviter.name == inviter.status.devices.first(where: \.isThisDevice)?.name)
    precondition(met?.fingerprint == candidate.fingerprint)
    let peers = inviter.listeningAddresses
    return try await Self.open(path, peers: peers)
  }
}

extension Node {
  /// Returns once it exchanges stores with another device.
  func meetsPeer() async throws {
    try await eventually { self.status.peers.contains(where: \.isExchanging) }
  }
}

extension Accounts {
  /// Returns once its node exchanges stores with another device.
  func meetsPeer() async throws {
    try await eventually { try await self.status().peers.contains(where: \.isExchanging) }
  }
}

/// Runs nodes while the body does its work.
func running<Result: Sendable>(
  _ nodes: Node..., body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await running(all: nodes, body: body)
}

/// Runs many nodes while the body does its work.
func running<Result: Sendable>(
  all nodes: [Node], body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await withThrowingTaskGroup(of: Result?.self) { group in
    for node in nodes {
      group.addTask {
        let port = node.configuration.port
        try await eventually { port == 0 || isFree(port) }
        try await node.run()
        return nil
      }
    }
    group.addTask {
      for node in nodes { try await eventually { !node.listeningAddresses.isEmpty } }
      return try await body()
    }
    defer { group.cancelAll() }
    while let result = try await group.next() {
      if let result { return result }
    }
    throw TimedOut()
  }
}

/// A port that nobody listens on now, so that a node keeps its address from run to run. It lies below
/// those from which the system takes ports for connections, and is given out once.
func freePort() throws -> UInt16 {
  for _ in 0..<1_000 {
    let port = UInt16.random(in: 20_000..<32_000)
    if givenPorts.withLock({ $0.insert(port).inserted }), isFree(port) { return port }
  }
  throw TimedOut()
}

/// Whether nobody listens on a port: also no process that another test forks just now, which has
/// this one's descriptors until it runs its program.
func isFree(_ port: UInt16) -> Bool {
  let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
  let descriptor = socket(AF_INET, kind, 0)
  defer { close(descriptor) }
  var isReused: Int32 = 1
  setsockopt(
    descriptor, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<Int32>.size))
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
  let result = withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
      bind(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  return result == 0
}

private let givenPorts = Mutex<Set<UInt16>>([])

struct TimedOut: Error {}

/// Runs a body that blocks on a thread of its own.
func onThread<Result: Sendable>(
  _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
  }
}

/// Keeps the lines that are logged, from warnings up.
struct Journal: LogHandler {
  final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }

    var logger: Logger { Logger(label: "test") { _ in Journal(lines: self) } }
  }

  let lines: Lines
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.warning
  subscript(metadataKey key: String) -> Logger.MetadataValue? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    lines.add("\(event.level): \(event.message) \(event.metadata ?? [:])")
  }
}
