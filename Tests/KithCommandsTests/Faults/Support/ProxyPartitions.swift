import Foundation
import Glibc
import Kith
import KithProxy

@testable import KithCommands

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
