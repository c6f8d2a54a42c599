import Foundation
import Glibc
import Kith
import KithProxy
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  @Suite struct PartitionTests {
    /// An attack of the proxies on the ways of one node, for a while.
    private enum Attack: CaseIterable {
      case twoWay, outgoing, incoming, cut, flapping, corruption, resets, slow, halfOpen
    }

    /// Attack after attack on the ways between three nodes, while all are written to: after they are
    /// mended all show the same, and nothing acknowledged is lost. `KITH_PARTITIONS` says how many.
    @Test func `after partitions of every kind all converge`() async throws {
      let seed = testSeed("partitions")
      let rounds = Faults.number("KITH_PARTITIONS", or: 14)
      try await ProxyPartitions.with(seed: seed) { household, ways in
        let ledger = Ledger()
        let writers = household.members.indices.map { index in
          Writer(
            client: household.members[index].client, node: index, seed: seed &+ UInt64(index))
        }
        var random = SeededGenerator(seed: seed &+ 100)
        let began = ContinuousClock.now
        try await ledger.whileWriting(writers) {
          for round in 0..<rounds {
            let attack = Attack.allCases[round % Attack.allCases.count]
            let node = Int.random(in: 0..<3, using: &random)
            let length = Duration.milliseconds(Int.random(in: 150...600, using: &random))
            try await carryOut(attack, on: node, for: length, household, ways, &random)
            ways.heal()
            try await Task.sleep(for: .milliseconds(Int.random(in: 50...300, using: &random)))
          }
          // On a busy host the attacks may be over before much was written.
          try await eventually("enough writes", seconds: 300, every: 50) {
            ledger.acknowledged > rounds * 10
          }
        }
        let attacked = ContinuousClock.now - began
        let settled = try await household.settle(seconds: 150)
        let problems = ledger.history.problems(try await household.outcome())
        let (corrupted, resets) = (ways.count(\.corruptedBytes), ways.count(\.reset))
        let accepted = ways.count(\.accepted)
        print(
          "partitions: \(rounds) attacks in \(attacked), \(accepted) connections, \(resets) reset, "
            + "\(corrupted) bytes corrupted, \(ledger.acknowledged) writes acknowledged, settled "
            + "after \(settled)")
        #expect(ledger.failures.isEmpty || ledger.failures.allSatisfy { $0 != "diverged" })
        expectNone(problems, seed: seed)
        for member in household.members {
          let report = try await member.client.status()
          #expect(report.problems.isEmpty && report.stores.allSatisfy { $0.quarantined == 0 })
        }
      }
    }

    private func carryOut(
      _ attack: Attack, on node: Int, for length: Duration, _ household: Household,
      _ ways: ProxyPartitions, _ random: inout SeededGenerator
    ) async throws {
      switch attack {
      case .twoWay: ways.isolate(node)
      case .outgoing: ways.silence(node, outgoing: true)
      case .incoming: ways.silence(node, outgoing: false)
      case .cut: ways.cut(node)
      case .flapping:
        for _ in 0..<8 {
          ways.cut(node)
          try await Task.sleep(for: .milliseconds(Int.random(in: 1...60, using: &random)))
          ways.heal()
          try await Task.sleep(for: .milliseconds(Int.random(in: 1...120, using: &random)))
        }
      case .corruption:
        try await untilMore(\.corruptedBytes, ways) {
          ways.set(.init(corruption: .chance(0.001)), node)
        }
      case .resets:
        try await untilMore(\.reset, ways) { ways.set(.init(resets: .every(30_000)), node) }
      case .slow: ways.set(.init(delay: .milliseconds(40), bytesPerSecond: 200_000), node)
      case .halfOpen:
        // The host loses its power and comes back: the others' connections to it never end.
        ways.abandon(node)
        let member = household.members[node]
        try await household.stop(member, SIGKILL)
        try await household.start(member, peers: ways.peers(of: node))
      }
      try await Task.sleep(for: length)
    }

    /// Attacks, and goes on until it has done something: on a busy host little may pass in a while.
    private func untilMore(
      _ counter: KeyPath<FaultyProxy.Counters, Int>, _ ways: ProxyPartitions, _ attack: () -> Void
    ) async throws {
      let before = ways.count(counter)
      attack()
      try await eventually("the attack to do something", seconds: 120, every: 20) {
        ways.count(counter) > before
      }
    }
  }
}

/// Beside the other attacks, for it only waits.
@Suite(.timeLimit(.minutes(5))) struct HalfOpenTests {
  /// A connection that neither side knows to be dead is given up after 90 s of silence, and made anew.
  @Test func `connections that died in silence are given up`() async throws {
    try await ProxyPartitions.with(seed: 1) { household, ways in
      let (alpha, beta) = (household.members[0].client, household.members[1].client)
      for node in 0..<3 { ways.abandon(node) }
      try await alpha.write([("a", 1)], in: Household.store)
      try await beta.write([("b", 2)], in: Household.store)
      #expect(try await alpha.value(forKey: "b", in: Household.store) == nil)
      let began = ContinuousClock.now
      // Through the sockets: Foundation starts no process if other tests hold 1,024 files.
      for member in household.members {
        try await eventually("\(member.name) to have both", seconds: 150, every: 100) {
          try await member.client.values(in: Household.store) == ["a": 1, "b": 2]
        }
      }
      let settled = ContinuousClock.now - began
      print("half-open: settled after \(settled)")
      #expect(settled > .seconds(1))
    }
  }
}

/// Three nodes whose ways to each other can be broken: a proxy on each of the three ways.
struct ProxyPartitions {
  /// The way from one node, which dials, to another.
  struct Way {
    var from: Int
    var to: Int
    var proxy: FaultyProxy

    func touches(_ node: Int) -> Bool { from == node || to == node }
    /// The direction that a node's own bytes take.
    func outgoing(_ node: Int) -> FaultyProxy.Direction { from == node ? .forward : .backward }
    func incoming(_ node: Int) -> FaultyProxy.Direction { from == node ? .backward : .forward }
  }

  var ways: [Way]

  /// Breaks all ways of a node, in both directions.
  func isolate(_ node: Int) { set(.init(isStalled: true), node) }

  /// Lets nothing that a node sends reach the others, or nothing of theirs reach it.
  func silence(_ node: Int, outgoing: Bool) {
    for way in ways where way.touches(node) {
      way.proxy.set(
        .init(isStalled: true), direction: outgoing ? way.outgoing(node) : way.incoming(node))
    }
  }

  /// Mends everything.
  func heal() { for way in ways { way.proxy.mend() } }

  /// Faults on all ways of a node.
  func set(_ faults: FaultyProxy.Faults, _ node: Int) {
    for way in ways where way.touches(node) { way.proxy.set(faults) }
  }

  func cut(_ node: Int) { for way in ways where way.touches(node) { way.proxy.cut() } }

  func abandon(_ node: Int) { for way in ways where way.touches(node) { way.proxy.abandon() } }

  /// The sum of a counter over all proxies, so far.
  func count(_ counter: KeyPath<FaultyProxy.Counters, Int>) -> Int {
    ways.reduce(0) { $0 + $1.proxy.counters[keyPath: counter] }
  }

  /// The addresses at which a node dials the others: those of the proxies.
  func peers(of node: Int) -> [String] {
    ways.filter { $0.from == node }.map { "127.0.0.1:\($0.proxy.port)" }
  }

  /// Three nodes of one account that reach each other only through proxies.
  static func with(
    seed: UInt64, _ body: (Household, ProxyPartitions) async throws -> Void
  ) async throws {
    let household = try Household()
    // Invited while no node runs, so that they know no address of each other.
    _ = try await household.create("alpha")
    _ = try await household.join("beta")
    _ = try await household.join("gamma")
    // A first start, alone, to be given a port.
    for member in household.members {
      try await household.start(member, peers: [])
      try await household.stop(member)
    }
    func configuration(_ number: UInt64) -> FaultyProxy.Configuration {
      var configuration = FaultyProxy.Configuration()
      configuration.seed = seed &+ number
      // Nobody listens there: no node finds a way round the proxies.
      configuration.sourceHost = "127.0.0.9"
      return configuration
    }
    let (alpha, beta) = (household.members[0].port, household.members[1].port)
    try await FaultyProxy.with(target: alpha, configuration: configuration(1)) { one in
      try await FaultyProxy.with(target: alpha, configuration: configuration(2)) { two in
        try await FaultyProxy.with(target: beta, configuration: configuration(3)) { three in
          let partitions = ProxyPartitions(ways: [
            Way(from: 1, to: 0, proxy: one), Way(from: 2, to: 0, proxy: two),
            Way(from: 2, to: 1, proxy: three),
          ])
          for (index, member) in household.members.enumerated() {
            try await household.start(member, peers: partitions.peers(of: index))
          }
          try await household.awaitMeeting()
          try await body(household, partitions)
        }
      }
    }
  }
}
