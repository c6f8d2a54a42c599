import Foundation

@testable import Kith
@testable import KithCommands
@testable import KithTerminal

/// Compares `set` in the program that has the directory open with `set` in an attached one.
enum AttachedBench {
  private static let warmUp = 100

  static func sets(
    _ directory: URL, rounds: Int
  ) async throws -> (owner: Samples, attached: Samples) {
    var configuration = Accounts.Configuration(directory: directory.path)
    configuration.hosts = []
    configuration.discoversPeers = false
    configuration.logger.logLevel = .critical
    return try await Accounts(configuration).use { owner in
      let store = try owner.store(BenchNodes.store)
      return try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await owner.run() }
        defer { group.cancelAll() }
        try await BenchNodes.wait("the node to serve") { owner.node?.status.isRunning == true }
        let others = try await Accounts(configuration).use { attached in
          try sets(try attached.store(BenchNodes.store), rounds)
        }
        let own = try sets(store, rounds)
        group.cancelAll()
        try await group.waitForAll()
        return (own, others)
      }
    }
  }

  private static func sets(_ store: KeyValueStore, _ rounds: Int) throws -> Samples {
    var samples = Samples()
    let clock = ContinuousClock()
    for round in 0..<(warmUp + rounds) {
      let start = clock.now
      try store.set(.integer(Int64(round)), forKey: "key \(round % 100)")
      if round >= warmUp { samples.add(clock.now - start) }
    }
    try store.flush()
    return samples
  }
}
