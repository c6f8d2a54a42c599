import Foundation
import Glibc
import Kith
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  @Suite struct PauseTests {
    /// A node that the system stops (SIGSTOP: as a laptop that sleeps, or a host out of memory)
    /// holds nobody up. Once it goes on it catches up, and the data that it was writing is not
    /// lost.
    @Test func `a node that is stopped holds nobody up, and catches up`() async throws {
      let seed = testSeed("SIGSTOP")
      let household = try Household()
      for name in ["alpha", "beta", "gamma"] {
        _ = try await (name == "alpha" ? household.create(name) : household.join(name))
      }
      for member in household.members { try await household.start(member) }
      try await household.awaitMeeting()
      let ledger = Ledger()
      let writers = household.members.indices.map { index in
        Writer(
          client: household.members[index].client, node: index, seed: seed &+ UInt64(index))
      }
      var random = SeededGenerator(seed: seed &+ 100)
      var slowest = Duration.zero
      try await ledger.whileWriting(writers) {
        for round in 0..<9 {
          let stopped = household.members[round % 3]
          let others = household.members.filter { $0 !== stopped }
          stopped.process?.send(SIGSTOP)
          try await eventually("\(stopped.name) to stop") { stopped.process?.state == "T" }
          // The others reach each other meanwhile, many times over.
          for number in 0..<5 {
            let value = PropertyListValue.integer(Int64(round * 100 + number))
            let began = ContinuousClock.now
            try await others[0].client.write([("others", value)], in: "others")
            try await eventually("a write beside a stopped node", seconds: 10) {
              try await others[1].client.value(forKey: "others", in: "others") == value
            }
            slowest = max(slowest, ContinuousClock.now - began)
          }
          try await Task.sleep(for: .milliseconds(Int.random(in: 0...500, using: &random)))
          stopped.process?.send(SIGCONT)
          try await eventually("\(stopped.name) to catch up", seconds: 30) {
            try await stopped.client.value(forKey: "others", in: "others")
              == others[0].client.value(forKey: "others", in: "others")
          }
        }
      }
      let settled = try await household.settle()
      let problems = ledger.history.problems(try await household.outcome())
      print(
        "SIGSTOP: 9 rounds, \(ledger.acknowledged) writes acknowledged, slowest write between the "
          + "others \(slowest), settled after \(settled)")
      #expect(ledger.failures.isEmpty, "\(ledger.failures)")
      expectNone(problems, seed: seed)
    }
  }
}
