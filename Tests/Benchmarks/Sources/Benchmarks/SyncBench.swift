import Foundation

@testable import Kith
@testable import KithCommands

struct SyncBench {
  let nodes: BenchNodes
  let yardsticks: Yardsticks
  var rounds: Int

  /// The number of writes that fill a write-ahead log once.
  let warmUpOfLogs: Int

  private static let key = "ping"
  private static let warmUp = 20
  private static let tasks = 64

  /// From the call of a durable set to its change on the other node. `began` and `ended` are called
  /// at each set.
  func setToNotified(
    _ receiver: Node, began: () -> Void = {}, ended: (ContinuousClock.Instant) -> Void = { _ in }
  ) async throws -> Samples {
    let store = try nodes.sender.store(BenchNodes.store)
    let changes = try receiver.store(BenchNodes.store).changes
    let clock = ContinuousClock()
    let (seen, continuation) = AsyncStream.makeStream(
      of: (PropertyListValue, ContinuousClock.Instant).self)
    let receiving = Task {
      for await change in changes {
        let now = clock.now
        for item in change.items where item.key.text == Self.key {
          if let new = item.new { continuation.yield((new, now)) }
        }
      }
      continuation.finish()
    }
    var samples = Samples()
    var sightings = seen.makeAsyncIterator()
    for round in 0..<(rounds + Self.warmUp) {
      if round >= Self.warmUp { try yardsticks.measureAll() }
      let value = PropertyListValue.integer(Int64(round))
      began()
      let start = clock.now
      try await store.commit { $0.set(value, forKey: Self.key) }
      while let (new, moment) = await sightings.next() {
        guard new == value else { continue }
        if round >= Self.warmUp { samples.add(moment - start) }
        ended(moment)
        break
      }
    }
    receiving.cancel()
    await receiving.value
    return samples
  }

  /// Measures durable sets, each after a bare commit in a directory of the given name. Both
  /// databases fill their write-ahead logs first: commits are slower while a log grows, and the one
  /// with fewer pages takes longer to fill.
  func sequentialSets(_ name: String) async throws -> (sets: Samples, commits: Samples) {
    let store = try nodes.sender.store(BenchNodes.store)
    let bare = try Yardsticks(directory: nodes.root.appending(path: name))
    let clock = ContinuousClock()
    var samples = Samples()
    for round in 0..<(rounds + warmUpOfLogs) {
      if round == warmUpOfLogs { bare.forgetCommits() }
      try bare.measureCommit()
      let value = PropertyListValue.string(Self.text(round))
      let start = clock.now
      try await store.commit { $0.set(value, forKey: "s\(round % 64)") }
      if round >= warmUpOfLogs { samples.add(clock.now - start) }
    }
    let commits = bare.commits
    bare.close()
    return (samples, commits)
  }

  /// Durable sets per second.
  func crowdedSets() async throws -> Double {
    let store = try nodes.sender.store(BenchNodes.store)
    let perTask = rounds
    let time = try await ContinuousClock().measure {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<Self.tasks {
          group.addTask {
            for round in 0..<perTask {
              let value = PropertyListValue.integer(Int64(round))
              try await store.commit { $0.set(value, forKey: "t\(task)") }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    return Double(Self.tasks * perTask) / (time / .seconds(1))
  }

  private static func text(_ round: Int) -> String {
    "value \(round) " + String(repeating: "x", count: 180)
  }
}
