import Foundation
import Kith
import UbiquitousKeyValueStore

/// The cost for a program that synchronises after each set, offline and with two peers.
struct Benchmark {
  private let rounds = Int(ProcessInfo.processInfo.environment["KITH_ROUNDS"] ?? "") ?? 10_000
  private let root = NSTemporaryDirectory() + "kith-client-\(UUID().uuidString)"

  func run() async throws {
    defer { try? FileManager.default.removeItem(atPath: root) }
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    let home = root + "/home"
    let peers = try await join(["one", "two"], by: home)
    try UbiquityBootstrap.configure(storeIdentifier: "com.example.Benchmark", directory: home) {
      $0.hosts = ["127.0.0.1"]
      $0.port = 0
      $0.peers = peers.map(\.address)
      $0.logger.logLevel = .error
    }
    try measureDisk()
    await measure("offline")
    let nodes = try peers.map { try open($0.directory, port: $0.port) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for node in nodes { group.addTask { try await node.run() } }
      let stores = try nodes.map { try $0.store("com.example.Benchmark") }
      try await until { stores.allSatisfy { $0.value(forKey: "key") == .integer(last) } }
      await measure("two peers")
      let begun = ContinuousClock.now
      try await until { stores.allSatisfy { $0.value(forKey: "key") == .integer(last) } }
      print("  both peers show the last one \(ContinuousClock.now - begun) later")
      group.cancelAll()
    }
  }

  private var last: Int64 { Int64(rounds - 1) }

  @MainActor private func measure(_ name: String) {
    let store = NSUbiquitousKeyValueStore.default
    store.set("before", forKey: "key")
    store.synchronize()
    var sets: [Double] = []
    var synchronisations: [Double] = []
    let clock = ContinuousClock()
    let whole = clock.measure {
      for round in 0..<rounds {
        sets.append(microseconds(clock.measure { store.set(Int64(round), forKey: "key") }))
        synchronisations.append(
          microseconds(
            clock.measure { guard store.synchronize() else { fatalError("it is false") } }))
      }
    }
    print("\(name): \(rounds) sets, each synchronised, in \(whole)")
    print("  set          ", summary(sets))
    print("  synchronize()", summary(synchronisations))
    let idle = (0..<rounds).map { _ in microseconds(clock.measure { store.synchronize() }) }
    print("  again, idle  ", summary(idle))
  }

  /// The time of an `fsync` alone, which bounds the cost of a durable write. Measured at the end of
  /// a growing file, and over existing bytes, as when a log is used again.
  private func measureDisk() throws {
    let path = root + "/disk"
    _ = FileManager.default.createFile(atPath: path, contents: nil)
    let file = try FileHandle(forWritingTo: URL(filePath: path))
    defer { try? file.close() }
    let clock = ContinuousClock()
    let block = Data(repeating: 1, count: 4_096)
    for name in ["appended", "written over"] {
      try file.seek(toOffset: 0)
      var times: [Double] = []
      for _ in 0..<500 {
        try file.write(contentsOf: block)
        times.append(microseconds(try clock.measure { try file.synchronize() }))
      }
      print("the disk, 4 KiB \(name):", summary(times))
    }
  }

  private func summary(_ values: [Double]) -> String {
    let sorted = values.sorted()
    func at(_ part: Double) -> String {
      String(format: "%.1f", sorted[min(sorted.count - 1, Int(part * Double(sorted.count)))])
    }
    return "median \(at(0.5)) µs, 99 % \(at(0.99)) µs, most \(at(1)) µs"
  }

  private func microseconds(_ duration: Duration) -> Double {
    Double(duration.components.attoseconds) / 1e12 + Double(duration.components.seconds) * 1e6
  }

  // MARK: Peers

  private struct Peer {
    var directory: String
    var port: UInt16
    var address: String { "127.0.0.1:\(port)" }
  }

  private func join(_ names: [String], by home: String) async throws -> [Peer] {
    let node = try open(home, port: 0)
    try await node.createAccount(name: "home")
    defer { try? node.close() }
    return try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await node.run() }
      for await status in node.statusUpdates where !status.listening.isEmpty { break }
      var joined: [Peer] = []
      for (name, port) in zip(names, 21_871...) {
        let (tokens, continuation) = AsyncStream<String>.makeStream()
        group.addTask {
          try await node.invite { invitation in
            continuation.yield(invitation.token)
            continuation.finish()
            for await candidate in invitation.candidates { candidate.accept() }
          }
        }
        let peer = Peer(directory: root + "/" + name, port: UInt16(port))
        let accounts = try open(peer.directory, port: peer.port)
        for await token in tokens {
          try await accounts.signIn(code: token, name: name) { _, _ in true }
        }
        try accounts.close()
        joined.append(peer)
      }
      group.cancelAll()
      try? await group.waitForAll()
      return joined
    }
  }

  private func open(_ directory: String, port: UInt16) throws -> Accounts {
    var configuration = Accounts.Configuration(directory: directory)
    configuration.hosts = ["127.0.0.1"]
    configuration.port = port
    configuration.discoversPeers = false
    configuration.logger.logLevel = .error
    return try Accounts(configuration)
  }

  private func until(_ condition: () -> Bool) async throws {
    while !condition() { try await Task.sleep(for: .milliseconds(1)) }
  }
}
