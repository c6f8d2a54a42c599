import Foundation
import Glibc
import Kith
import KithTestSupport
import Synchronization
import Testing

@testable import KithCommands

@Suite("Three nodes as real processes", .serialized, .timeLimit(.minutes(5)))
struct ThreeNodesTests {
  /// Transactions in all.
  private static let writes = 2_000
  /// One of so many transactions is followed, or interrupted, by the node's death.
  private static let deathRate = 90
  private static let store = "default"

  /// Random sets, removals and transactions on all nodes over their control sockets, while nodes
  /// are killed and started again at random: in the end all show the same, byte for byte, and no
  /// acknowledged write is lost unaccounted for. See ``History`` for how that is judged. The seed is
  /// printed; KITH_SEED gives it back.
  @Test func `killed at random, nothing acknowledged is lost`() async throws {
    let seed = testSeed("three nodes")
    let household = try Household()
    _ = try await household.create("alpha")
    _ = try await household.join("beta")
    _ = try await household.join("gamma")
    for member in household.members { try await household.start(member) }
    for member in household.members {
      try await eventually("\(member.name)'s first sync") {
        try await !member.client.status().peers.isEmpty
      }
    }
    let perNode = Self.writes / household.members.count + 1
    var history = History()
    let runs = household.members.indices.map { index in
      NodeRun(household: household, index: index, seed: seed &+ UInt64(index), count: perNode)
    }
    let results = try await withThrowingTaskGroup(of: (writes: [HistoryWrite], kills: Int).self) {
      group in
      for run in runs { group.addTask { try await run.run() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    for result in results { history.writes += result.writes }
    let kills = results.reduce(0) { $0 + $1.kills }
    #expect(kills > 3)
    try await household.settle()
    let problems = history.problems(try await household.outcome())
    let acknowledged = history.writes.count(where: \.isAcknowledged)
    print("three nodes: \(acknowledged) writes acknowledged, \(kills) nodes killed")
    #expect(acknowledged >= Self.writes)
    expectNone(problems, seed: seed)
  }

  /// The writes and kills of one node.
  private struct NodeRun: @unchecked Sendable {
    // Unchecked: each run starts and stops its own member only, and reads the others' ports, which
    // do not change any more.
    let household: Household
    let index: Int
    let seed: UInt64
    let count: Int

    func run() async throws -> (writes: [HistoryWrite], kills: Int) {
      var random = SeededGenerator(seed: seed)
      var writes: [HistoryWrite] = []
      var kills = 0
      let member = household.members[index]
      for number in 0..<count {
        let transaction = number * household.members.count + index
        let asked = Self.transaction(transaction, &random)
        let dies = Int.random(in: 0..<deathRate, using: &random) == 0
        let interrupted = dies && Bool.random(using: &random)
        let began = ContinuousClock.now
        var isAcknowledged = false
        var isRefused = false
        let delay = UInt32.random(in: 0...3_000, using: &random)
        async let death: Void = die(if: interrupted, after: delay)
        do {
          try await member.client.write(asked, in: store)
          isAcknowledged = true
        } catch {
          isRefused = error.isRefusal
          if !interrupted && !isRefused { throw error }
        }
        try await death
        if dies && !interrupted { try await household.stop(member, SIGKILL) }
        if dies {
          kills += 1
          try await household.start(member)
        }
        let ended = ContinuousClock.now
        if isRefused { continue }
        for (key, value) in asked {
          writes.append(
            HistoryWrite(
              key: key, value: value, node: index, transaction: transaction, began: began,
              ended: ended, isAcknowledged: isAcknowledged))
        }
      }
      return (writes, kills)
    }

    /// Kills the node while its write is under way.
    private func die(if dies: Bool, after microseconds: UInt32) async throws {
      guard dies else { return }
      try await Task.sleep(for: .microseconds(microseconds))
      try await household.stop(household.members[index], SIGKILL)
    }

    /// A random transaction; each value names it.
    private static func transaction(
      _ number: Int, _ random: inout SeededGenerator
    ) -> [(key: String, value: PropertyListValue?)] {
      let size =
        Int.random(in: 0..<4, using: &random) == 0 ? Int.random(in: 2...5, using: &random) : 1
      var keys: Set<String> = []
      var writes: [(key: String, value: PropertyListValue?)] = []
      for _ in 0..<size {
        let isLarge = Int.random(in: 0..<50, using: &random) == 0
        let key =
          isLarge
          ? "large.\(Int.random(in: 0..<8, using: &random))"
          : "key.\(Int.random(in: 0..<60, using: &random))"
        guard keys.insert(key).inserted else { continue }
        let length = isLarge ? 180_000 : Int.random(in: 0..<200, using: &random)
        let text = "value \(number).\(writes.count) " + String(repeating: "v", count: length)
        let removes = Int.random(in: 0..<6, using: &random) == 0
        writes.append((key, removes ? nil : .string(text)))
      }
      return writes
    }
  }
}

/// Numbers that a seed decides (SplitMix64, Steele, Lea and Flood, 2014).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
