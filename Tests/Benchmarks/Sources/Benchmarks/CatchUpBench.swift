import Foundation

@testable import Kith
@testable import KithTerminal

/// Measures how fast an empty device pulls a full store, without the time to connect.
struct CatchUpBench {
  /// 1,024 such values come close to the default policy's limit.
  static let valueBytes = 900

  /// This device has a full store after the bench.
  static let firstDevice = "new-1"

  let nodes: BenchNodes
  /// Whether all keys are in one change set, instead of each in its own.
  let inOne: Bool

  var keys = 1_024

  /// Joins devices, fills the store without them, and returns their catch-up times.
  func run(devices: Int) async throws -> Samples {
    var joined: [Node] = []
    for device in 1...devices { joined.append(try await nodes.join("new-\(device)")) }
    try await fill()
    var samples = Samples()
    for node in joined { samples.add(try await catchUp(node)) }
    return samples
  }

  /// Another device is connected meanwhile: writes without a peer are published later, in few
  /// change sets.
  private func fill() async throws {
    let store = try nodes.sender.store(BenchNodes.store)
    let witness = try await nodes.join("witness")
    try await nodes.running(witness) {
      try await BenchNodes.wait("two nodes to connect") { !witness.status.peers.isEmpty }
      if inOne {
        try await store.commit { transaction in
          for index in 0..<keys { transaction.set(Self.value(index), forKey: Self.key(index)) }
        }
      } else {
        for index in 0..<keys {
          try await store.commit { $0.set(Self.value(index), forKey: Self.key(index)) }
          // The first may wait for the end of the peer's first exchange.
          try await BenchNodes.wait("a write to be published") {
            try !store.syncReport.hasUnpublishedWrites
          }
        }
      }
      // No `synchronize`: it would wait for the new devices, which are not connected.
      let copy = try witness.store(BenchNodes.store)
      try await BenchNodes.wait("its own peer") { try copy.usage.keys >= keys }
    }
  }

  /// Returns the time from the session's start until the store shows all keys.
  private func catchUp(_ node: Node) async throws -> Duration {
    // Open the store before the node runs, so that only the exchange is timed.
    let store = try node.store(BenchNodes.store)
    let clock = ContinuousClock()
    let connected = Task { () -> ContinuousClock.Instant? in
      for await status in node.statusUpdates where !status.peers.isEmpty { return clock.now }
      return nil
    }
    let complete = Task { () -> ContinuousClock.Instant? in
      for await change in store.changes where !change.items.isEmpty {
        if try store.usage.keys >= keys { return clock.now }
      }
      return nil
    }
    return try await nodes.running(node) {
      let limit = Task {
        try await Task.sleep(for: .seconds(30))
        connected.cancel()
        complete.cancel()
      }
      let times = try await (connected.value, complete.value)
      limit.cancel()
      guard let start = times.0, let end = times.1 else {
        throw CommandFailure(.unreachable, "the bench waited 30 s for a new device to catch up")
      }
      return end - start
    }
  }

  private static func key(_ index: Int) -> String { "key.\(index)" }

  private static func value(_ index: Int) -> PropertyListValue {
    let text = "\(index) "
    return .string(text + String(repeating: "v", count: valueBytes - text.utf8.count))
  }
}
