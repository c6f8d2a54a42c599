import Foundation
import Glibc
import Kith
import KithTestSupport
import KithTesting
import Testing

@testable import KithCommands

extension Faults {
  @Suite(.enabled(if: NamespaceSet.isPossible, "network namespaces cannot be made here"))
  struct NamespaceTests {
    /// Partitions as the kernel makes them: packets get lost, and TCP itself has to find out.
    @Test func `after cables were pulled all converge`() async throws {
      let seed = testSeed("cables")
      let household = try Household()
      let namespaces = try Namespaces(household.root.lastPathComponent)
      defer { namespaces.remove() }
      for (index, name) in ["alpha", "beta", "gamma"].enumerated() {
        let member = try await (index == 0 ? household.create(name) : household.join(name))
        member.launcher = namespaces.launcher(index)
        member.host = "0.0.0.0"
      }
      for (index, member) in household.members.enumerated() {
        let peers = (0..<index).map { other in
          Namespaces.address(of: other, towards: index) + ":\(household.members[other].port)"
        }
        try await household.start(member, peers: peers)
      }
      try await household.awaitMeeting()
      try await attack(household, namespaces, seed)
      for member in household.members { try await household.stop(member, SIGKILL) }
    }

    private func attack(
      _ household: Household, _ ways: Namespaces, _ seed: UInt64
    ) async throws {
      let rounds = Faults.number("KITH_CABLES", or: 6)
      let ledger = Ledger()
      let writers = household.members.indices.map { index in
        Writer(client: household.members[index].client, node: index, seed: seed &+ UInt64(index))
      }
      var random = SeededGenerator(seed: seed &+ 100)
      try await ledger.whileWriting(writers) {
        for round in 0..<rounds {
          let node = Int.random(in: 0..<3, using: &random)
          switch round % 3 {
          case 0: try ways.isolate(node)
          case 1: try ways.silence(node, outgoing: true)
          default: try ways.silence(node, outgoing: false)
          }
          try await Task.sleep(for: .milliseconds(Int.random(in: 500...1_500, using: &random)))
          try ways.heal()
          try await Task.sleep(for: .milliseconds(Int.random(in: 200...600, using: &random)))
        }
      }
      let settled = try await household.settle(seconds: 150)
      let problems = ledger.history.problems(try await household.outcome())
      print(
        "cables: \(rounds) partitions, \(ledger.acknowledged) writes acknowledged, settled after "
          + "\(settled)")
      #expect(ledger.failures.isEmpty)
      expectNone(problems, seed: seed)
    }
  }
}
