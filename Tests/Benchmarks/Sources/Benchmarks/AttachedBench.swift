import Foundation

@testable import Kith
@testable import KithCommands
@testable import KithTerminal

/// Compares `set` in the program that has the directory open with `set` in an attached one, alone
/// and by `kith batch`.
enum AttachedBench {
  private static let warmUp = 100

  static func sets(
    _ directory: URL, rounds: Int
  ) async throws -> (owner: Samples, attached: Samples, batchRate: Double) {
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
        let (others, batchRate) = try await Accounts(configuration).use { attached in
          let store = try attached.store(BenchNodes.store)
          return (try sets(store, rounds), try batchedSets(store, attached, rounds: rounds / 50))
        }
        let own = try sets(store, rounds)
        group.cancelAll()
        try await group.waitForAll()
        return (own, others, batchRate)
      }
    }
  }

  /// About as many requests as `kith batch` reads at once.
  private static let batchLines = 1_000

  /// The durable sets of a second by rounds of `kith batch`, without its input and output.
  private static func batchedSets(
    _ store: KeyValueStore, _ accounts: Accounts, rounds: Int
  ) throws -> Double {
    var samples = Samples()
    let clock = ContinuousClock()
    for round in 0...rounds {
      let lines: [[UInt8]?] = (0..<batchLines).map { number in
        let key = "key \(number % 100)"
        let value = round * batchLines + number
        return Array(#"{"id":\#(number),"do":"set","key":"\#(key)","value":\#(value)}"#.utf8)
      }
      let start = clock.now
      let answers = BatchRound(lines[...], store: store, accounts: accounts, watchesLeft: 0).answers
      let duration = clock.now - start
      guard answers.count == batchLines, !answers.contains(where: { $0.contains("error") }) else {
        throw CommandFailure(.failure, "a batch of the bench was refused")
      }
      // The first one warms up.
      if round > 0 { samples.add(duration) }
    }
    return Double(batchLines) / samples.median
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
