import Foundation

@testable import Kith
@testable import KithCommands
@testable import KithCore
@testable import KithTerminal
@testable import KithTestSupport

/// Measures the curves, one after another, each point on directories of its own.
struct CurvesRun {
  let root: URL
  /// Whether the greatest size of each curve is left out.
  let isQuick: Bool
  /// Called before each point.
  let progress: (String) -> Void

  private static let rounds = 60

  /// How the values of a device's stores were written.
  enum Filling {
    /// Without a peer, so that nothing is signed.
    case drafts
    /// Published to a peer: all values of a store in one change set, or each in its own.
    case oneChangeSet
    case manyChangeSets
  }

  /// Throws if one of the names is no curve's.
  func curves(only names: [String]?) async throws -> [Curve] {
    let all: [(Curve, [Int], (Int, URL) async throws -> Double)] = [
      (
        curve("keys", "set to notified", "keys in the store", "O(log n)"),
        [16, 256, 4_096, 65_536], { try await notified(keys: $0, in: $1) }
      ),
      (
        curve("valueBytes", "set to notified", "bytes of the value", "O(n)"),
        [16, 1_024, 16_384, 262_144, 1_000_000], { try await notified(valueBytes: $0, in: $1) }
      ),
      (
        curve("stores", "set to notified", "stores of the account", "O(1)"),
        [1, 16, 64, 256], { try await notified(stores: $0, in: $1) }
      ),
      (
        curve("devices", "set to notified on all", "devices in one program", "O(n) on one host"),
        [2, 4, 8, 16], { try await notified(devices: $0, in: $1) }
      ),
      (
        curve("programs", "durable set", "attached programs that watch", "O(n)"),
        [1, 4, 16, 64], { try await set(programs: $0, in: $1) }
      ),
      (
        curve("missed", "catch-up", "change sets missed", "O(n)"),
        [1, 16, 256, 1_024], { try await caughtUp(missed: $0, in: $1) }
      ),
      (
        curve("start", "open to first read, one change set each", "stores of 1 MiB", "O(n)"),
        [1, 16, 64, 256], { try await Self.started(stores: $0, by: .oneChangeSet, in: $1) }
      ),
      (
        curve("startMany", "open to first read, 1,000 change sets each", "stores of 1 MiB", "O(n)"),
        [1, 16, 64], { try await Self.started(stores: $0, by: .manyChangeSets, in: $1) }
      ),
      (
        curve("startDrafts", "open to first read, never published", "stores of 1 MiB", "O(n)"),
        [1, 16, 64, 256], { try await Self.started(stores: $0, by: .drafts, in: $1) }
      ),
      (
        curve("memory", "private memory of a node", "stores of 1 MiB", "O(n)", .bytes),
        [1, 16, 64], { try await remembered(stores: $0, in: $1) }
      ),
      (
        curve("admission", "admission over quota", "keys that the policy allows", "O(n log n)"),
        [16, 256, 4_096, 65_536], { keys, _ in try admitted(keys: keys) }
      ),
    ]
    let known = all.map(\.0.name)
    if let unknown = names?.first(where: { !known.contains($0) }) {
      throw CommandFailure(
        .usage, "no curve “\(unknown)”; there are \(known.joined(separator: ", "))")
    }
    var curves: [Curve] = []
    for (curve, sizes, measure) in all where names?.contains(curve.name) ?? true {
      var curve = curve
      for size in isQuick ? Array(sizes.dropLast()) : sizes {
        progress("\(curve.title), \(Format.count(size)) \(curve.axis)")
        let directory = root.appending(path: "\(curve.name)-\(size)")
        curve.add(size, try await measure(size, directory))
        try? FileManager.default.removeItem(at: directory)
      }
      curves.append(curve)
    }
    return curves
  }

  private func curve(
    _ name: String, _ title: String, _ axis: String, _ complexity: String,
    _ unit: Curve.Unit = .seconds
  ) -> Curve {
    Curve(name: name, title: title, axis: axis, unit: unit, complexity: complexity)
  }

  // MARK: - Set to notified

  private func notified(keys: Int, in directory: URL) async throws -> Double {
    try await BenchNodes.with(directory) { nodes in
      let receiver = try await nodes.join("receiver")
      let stores = try [nodes.sender, receiver].map { try $0.store("curve", policy: .maximum) }
      return try await nodes.connected([receiver]) {
        for start in stride(from: 0, to: keys, by: 1_024) {
          try await stores[0].commit { transaction in
            for key in start..<min(keys, start + 1_024) {
              transaction.set(.string(Self.text(100)), forKey: "key \(key)")
            }
          }
        }
        try await BenchNodes.wait("the keys to arrive") { try stores[1].usage.keys == keys }
        return try await Self.notified(stores[0], [stores[1]], key: "key 0", bytes: 100)
      }
    }
  }

  private func notified(valueBytes: Int, in directory: URL) async throws -> Double {
    try await BenchNodes.with(directory) { nodes in
      let receiver = try await nodes.join("receiver")
      let stores = try [nodes.sender, receiver].map { try $0.store("curve") }
      return try await nodes.connected([receiver]) {
        try await Self.notified(stores[0], [stores[1]], key: "key", bytes: valueBytes)
      }
    }
  }

  private func notified(stores count: Int, in directory: URL) async throws -> Double {
    try await BenchNodes.with(directory) { nodes in
      let receiver = try await nodes.join("receiver")
      let stores = try [nodes.sender, receiver].map { node in
        try (0..<count).map { try node.store("store\($0)") }
      }
      return try await nodes.connected([receiver]) {
        for store in stores[0] { try await store.commit { $0.set(.integer(1), forKey: "key") } }
        try await BenchNodes.wait("the stores to arrive") {
          try stores[1].allSatisfy { try $0.usage.keys == 1 }
        }
        return try await Self.notified(
          stores[0][count - 1], [stores[1][count - 1]], key: "key", bytes: 100)
      }
    }
  }

  private func notified(devices: Int, in directory: URL) async throws -> Double {
    try await BenchNodes.with(directory) { nodes in
      var others: [Node] = []
      for device in 1..<devices { others.append(try await nodes.join("device-\(device)")) }
      let receivers = try others.map { try $0.store("curve") }
      let sender = try nodes.sender.store("curve")
      return try await nodes.connected(others) {
        try await Self.notified(sender, receivers, key: "key", bytes: 100)
      }
    }
  }

  /// The median time from the call of a durable set until the last receiver's changes had it, which
  /// may be before the set is durable.
  private static func notified(
    _ sender: KeyValueStore, _ receivers: [KeyValueStore], key: String, bytes: Int
  ) async throws -> Double {
    let clock = ContinuousClock()
    typealias Sighting = (value: PropertyListValue, moment: ContinuousClock.Instant)
    let (seen, sighted) = AsyncStream.makeStream(of: Sighting.self)
    let watching = receivers.map { receiver in
      let changes = receiver.changes
      return Task {
        for await change in changes {
          let now = clock.now
          for item in change.items where item.key.text == key {
            if let new = item.new { sighted.yield((new, now)) }
          }
        }
      }
    }
    defer { watching.forEach { $0.cancel() } }
    var samples = Samples()
    var sightings = seen.makeAsyncIterator()
    // The first rounds warm up.
    for round in -10..<rounds {
      let value = PropertyListValue.string("\(round) " + text(bytes))
      let start = clock.now
      try await sender.commit { $0.set(value, forKey: key) }
      var missing = receivers.count
      var last = start
      while missing > 0, let (new, moment) = await sightings.next() {
        guard new == value else { continue }
        missing -= 1
        last = max(last, moment)
      }
      if round >= 0 { samples.add(last - start) }
    }
    return samples.median
  }

  private static func text(_ bytes: Int) -> String { String(repeating: "v", count: bytes) }

  // MARK: - Programs on one directory

  private func set(programs: Int, in directory: URL) async throws -> Double {
    var configuration = Accounts.Configuration(directory: directory.path)
    configuration.hosts = []
    configuration.discoversPeers = false
    configuration.logger.logLevel = .critical
    let settings = configuration
    return try await Accounts(settings).use { owner in
      _ = try owner.store("curve")
      return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await owner.run() }
        defer { group.cancelAll() }
        try await BenchNodes.wait("the node to serve") { owner.node?.status.isRunning == true }
        let attached = try (0..<programs).map { _ in try Accounts(settings) }
        defer { for accounts in attached { try? accounts.close() } }
        let stores = try attached.map { try $0.store("curve") }
        let watching = stores.map { store in Task { for await _ in store.changes {} } }
        defer { watching.forEach { $0.cancel() } }
        var samples = Samples()
        let clock = ContinuousClock()
        for round in -10..<Self.rounds {
          let start = clock.now
          try await stores[0].commit { $0.set(.integer(Int64(round)), forKey: "key") }
          if round >= 0 { samples.add(clock.now - start) }
        }
        return samples.median
      }
    }
  }

  // MARK: - Catching up, starting, memory, admission

  private func caughtUp(missed: Int, in directory: URL) async throws -> Double {
    try await BenchNodes.with(directory) { nodes in
      try await CatchUpBench(nodes: nodes, inOne: false, keys: missed).run(devices: 3).median
    }
  }

  /// From the opening of a directory that was closed to a value's first read.
  static func started(
    stores: Int, by filling: Filling, in directory: URL
  ) async throws -> Double {
    let path = try await filled(stores: stores, by: filling, in: directory)
    var samples = Samples()
    for _ in 0..<3 {
      let start = ContinuousClock.now
      let node = try await Node.open(BenchNodes.configuration(path))
      let value = try node.store("store0").value(forKey: "key 0")
      samples.add(ContinuousClock.now - start)
      try node.close()
      guard value != nil else { throw CommandFailure(.failure, "a stored value is missing") }
    }
    return samples.median
  }

  private func remembered(stores: Int, in directory: URL) async throws -> Double {
    let path = try await Self.filled(stores: stores, by: .oneChangeSet, in: directory)
    let memory = try await MemoryBench.memory(
      directory: URL(filePath: path), store: "store0")
    return Double(memory.anonymous)
  }

  private static let valuesOfStore = 1_000

  /// Returns the directory of a device that nothing has open, with so many stores of 1,000 values
  /// of 1,000 bytes. A peer makes it publish; not all of it needs to reach the peer, which accepts 56
  /// MiB of one author.
  private static func filled(
    stores: Int, by filling: Filling, in directory: URL
  ) async throws -> String {
    guard filling != .drafts else { return try await drafted(stores: stores, in: directory) }
    try await BenchNodes.with(directory) { nodes in
      let witness = try await nodes.join("witness")
      try await nodes.connected([witness]) {
        for number in 0..<stores {
          let store = try nodes.sender.store("store\(number)")
          try await publish(store, by: filling)
        }
      }
    }
    return directory.appending(path: "first").path
  }

  private static func publish(_ store: KeyValueStore, by filling: Filling) async throws {
    if filling == .manyChangeSets {
      for key in 0..<valuesOfStore {
        try await store.commit { $0.set(.string(text(1_000)), forKey: "key \(key)") }
        // Later ones are published at once.
        if key == 0 { try await waitUntilPublished(store) }
      }
    } else {
      try await fill(store)
    }
    try await waitUntilPublished(store)
  }

  private static func waitUntilPublished(_ store: KeyValueStore) async throws {
    try await BenchNodes.wait("a write to be published") {
      try !store.syncReport.hasUnpublishedWrites
    }
  }

  private static func drafted(stores: Int, in directory: URL) async throws -> String {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let path = directory.appending(path: "device").path
    _ = try Node.createAccount(directory: path, name: "device")
    let node = try await Node.open(BenchNodes.configuration(path))
    for number in 0..<stores { try await fill(try node.store("store\(number)")) }
    try node.close()
    return path
  }

  private static func fill(_ store: KeyValueStore) async throws {
    try await store.commit { transaction in
      for key in 0..<valuesOfStore {
        transaction.set(.string(text(1_000)), forKey: "key \(key)")
      }
    }
  }

  private func admitted(keys: Int) throws -> Double {
    var policy = Policy.maximum
    policy.keys = keys
    return try ReadBench.admission(of: AdmissionLoad(policy: policy)).times.median
  }
}
