import Foundation
import Glibc
import Kith
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  @Suite struct KillTests {
    /// Kills nodes again and again at random moments while all are written to, and starts them at
    /// once: in the end all show the same, and no acknowledged write is lost. `KITH_KILLS` says how
    /// often; see ``History`` for how it is judged.
    @Test func `killed hundreds of times under load, nothing acknowledged is lost`() async throws {
      let seed = testSeed("kill -9")
      let rounds = Faults.number("KITH_KILLS", or: 30)
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
      let began = ContinuousClock.now
      var kills = 0
      try await ledger.whileWriting(writers) {
        var random = SeededGenerator(seed: seed &+ 100)
        while kills < rounds {
          let member = household.members[Int.random(in: 0..<3, using: &random)]
          // Sometimes while it starts, sometimes in the middle of its work.
          let delay = Duration.microseconds(Int.random(in: 0...120_000, using: &random))
          try await Task.sleep(for: delay)
          if Int.random(in: 0..<8, using: &random) == 0 {
            // All at once, as when the power goes: no other node has the data that one of them
            // loses.
            for each in household.members { each.process?.send(SIGKILL) }
            for each in household.members where each !== member {
              try await household.stop(each, SIGKILL)
              try await household.start(each)
            }
          }
          #expect(try await household.stop(member, SIGKILL)?.status == 128 + SIGKILL)
          kills += 1
          if Int.random(in: 0..<4, using: &random) == 0, kills < rounds {
            // Killed again while it starts: at any point of opening, replaying, dialling.
            let again = Duration.microseconds(Int.random(in: 0...150_000, using: &random))
            try await household.startAndKill(member, after: again)
            kills += 1
          }
          try await household.start(member)
        }
      }
      let settled = try await household.settle()
      let problems = ledger.history.problems(try await household.outcome())
      print(
        "kill -9: \(kills) rounds in \(ContinuousClock.now - began), \(ledger.acknowledged) writes "
          + "acknowledged of \(ledger.history.writes.count), \(ledger.failures.count) calls cut off, "
          + "settled after \(settled)")
      #expect(ledger.acknowledged > rounds * 5)
      expectNone(problems, seed: seed)
    }

    /// The same of a node that is alone: what it loses nobody else can give back.
    @Test func `killed while it is alone, a node loses nothing acknowledged`() async throws {
      let seed = testSeed("kill -9, alone")
      let rounds = Faults.number("KITH_KILLS", or: 30) / 3
      let household = try Household()
      let member = try await household.create("alpha")
      try await household.start(member)
      let ledger = Ledger()
      let writer = Writer(client: member.client, node: 0, seed: seed)
      try await ledger.whileWriting([writer]) {
        var random = SeededGenerator(seed: seed &+ 100)
        for _ in 0..<rounds {
          try await Task.sleep(for: .microseconds(Int.random(in: 0...120_000, using: &random)))
          #expect(try await household.stop(member, SIGKILL)?.status == 128 + SIGKILL)
          try await household.start(member)
        }
      }
      let problems = ledger.history.problems(try await household.outcome())
      print("kill -9, alone: \(rounds) rounds, \(ledger.acknowledged) writes acknowledged")
      expectNone(problems, seed: seed)
    }
  }
}

extension Household {
  /// Starts a member's node and kills it a moment later, ready or not.
  fileprivate func startAndKill(_ member: Member, after delay: Duration) async throws {
    let process = try KithProcess(
      [
        "run", "--directory", member.directory.path, "--listen", member.host, "--port",
        "\(member.port)", "--no-discovery",
      ], in: root)
    try await Task.sleep(for: delay)
    process.send(SIGKILL)
    _ = try await process.wait()
  }
}

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
