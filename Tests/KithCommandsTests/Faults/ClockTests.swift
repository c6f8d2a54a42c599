import Foundation
import Glibc
import Kith
import KithTestSupport
import Testing

@testable import KithCommands

extension Faults {
  /// Three nodes, one of which has a wrong clock. No kernel here calls its clock synchronised,
  /// except if a test says so.
  @Suite(.enabled(if: Clocks.isPossible, "libfaketime of Debian's faketime is missing"))
  struct ClockTests {
    private struct Trio {
      let household: Household
      let good: Household.Member
      let other: Household.Member
      let wrong: Household.Member
      let offset: URL

      /// Makes three devices; the third reads its clock through libfaketime.
      init() async throws {
        household = try Household()
        good = try await household.create("good")
        other = try await household.join("other")
        wrong = try await household.join("wrong")
        offset = household.root.appending(path: "offset")
        try Clocks.set("+0", in: offset)
        wrong.environment = try Clocks.environment(offsetFile: offset)
        wrong.launcher = Clocks.launcher
      }

      func start() async throws {
        for member in household.members { try await household.start(member) }
        try await household.awaitMeeting()
      }

      /// Whether a node says in `kith status` that a peer's clock differs by so many days.
      func saysSo(_ member: Household.Member, _ days: ClosedRange<Int>) async throws -> Bool {
        let status = try await household.run(member, "status")
        guard
          let match = status.output.firstMatch(of: /its clock is ([0-9]+) days/),
          let said = Int(match.1)
        else { return false }
        return days.contains(said)
      }

      /// The two with good clocks write to each other.
      func goodOnesGoOn(_ value: PropertyListValue) async throws {
        try await good.client.write([("between", value)], in: Household.store)
        try await eventually("the good clocks to go on", seconds: 10) {
          try await other.client.value(forKey: "between", in: Household.store) == value
        }
      }
    }

    /// Without a time service a person says that the time is right. A write from ahead gets it.
    @Test func `a person's word ends what a clock ahead left behind`() async throws {
      let trio = try await Trio()
      try await trio.start()
      try await trio.household.stop(trio.wrong)
      try Clocks.set("+10y", in: trio.offset)
      try await trio.household.start(trio.wrong)
      try await trio.wrong.client.write([("ahead", "written")], in: Household.store)
      try await trio.household.stop(trio.wrong)
      try Clocks.set("+0", in: trio.offset)
      try await trio.household.start(trio.wrong)
      try await eventually("the node to say that a write is ahead", seconds: 40) {
        try await trio.household.run(trio.wrong, "status").output.contains("ahead of the time")
      }
      let accepted = try await trio.household.run(trio.wrong, "clock", "accept")
      #expect(accepted.status == 0, "\(accepted)")
      for member in [trio.good, trio.other] {
        try await eventually("what was written ahead to be at \(member.name)", seconds: 40) {
          try await member.client.value(forKey: "ahead", in: Household.store) == "written"
        }
      }
      #expect(
        try await !trio.household.run(trio.wrong, "status").output.contains("ahead of the time"))
    }

    /// Years ahead at its start: nothing is exchanged with it, both sides say by how much, and the
    /// others go on. Its data survives; with its clock right it takes part again, and once that is certain what it
    /// wrote ahead is everywhere.
    @Test func `a clock years ahead is told and poisons nobody`() async throws {
      let trio = try await Trio()
      try await trio.start()
      try await trio.wrong.client.write([("before", "right")], in: Household.store)
      try await eventually("the first write to be everywhere") {
        try await trio.other.client.value(forKey: "before", in: Household.store) == "right"
      }
      try await trio.household.stop(trio.wrong)
      try Clocks.set("+10y", in: trio.offset)
      try await trio.household.start(trio.wrong)
      let years = (10 * 364)...(10 * 367)
      for member in trio.household.members {
        try await eventually("\(member.name) to say that clocks differ", seconds: 40) {
          try await trio.saysSo(member, years)
        }
      }
      let journal = try #require(trio.good.process).saidSoFar
      let line = journal.split(separator: "\n").first { $0.contains("clocks differ") } ?? ""
      #expect(line.contains("device=wrong"), "\(journal)")
      #expect(line.contains("stores are not exchanged"), "\(journal)")
      try await trio.wrong.client.write([("ahead", "written")], in: Household.store)
      try await trio.goodOnesGoOn(1)
      for member in [trio.good, trio.other] {
        #expect(try await member.client.value(forKey: "ahead", in: Household.store) == nil)
        #expect(try await member.client.status().stores.allSatisfy { $0.quarantined == 0 })
      }
      #expect(
        try await trio.wrong.client.values(in: Household.store) == [
          "before": "right", "ahead": "written",
        ])
      // Nobody's own clock went ahead: what they write now is not in the future.
      try await trio.household.stop(trio.wrong)
      try Clocks.set("+0", in: trio.offset)
      try await trio.household.start(trio.wrong)
      #expect(
        try await trio.wrong.client.value(forKey: "ahead", in: Household.store) == "written")
      try await trio.goodOnesGoOn(2)
      try await eventually("the mended clock to take part", seconds: 40) {
        try await trio.wrong.client.value(forKey: "between", in: Household.store) == 2
      }
      // No clock is called synchronised, so the entry that is ahead stays on its node, and the
      // status reports it.
      #expect(
        try await trio.household.run(trio.wrong, "status").output.contains("ahead of the time"))
      #expect(try await trio.good.client.value(forKey: "ahead", in: Household.store) == nil)
      // Once its kernel calls its clock synchronised it is taken back, and published again.
      try await trio.household.stop(trio.wrong)
      let library = try Clocks.synchronisedLibrary(in: trio.household.root)
      trio.wrong.environment = try Clocks.environment(
        offsetFile: trio.offset, isSynchronised: library)
      try await trio.household.start(trio.wrong)
      for member in [trio.good, trio.other] {
        try await eventually("what was written ahead to be at \(member.name)", seconds: 40) {
          try await member.client.value(forKey: "ahead", in: Household.store) == "written"
        }
      }
      #expect(
        try await !trio.household.run(trio.wrong, "status").output.contains("ahead of the time"))
      // The next write of the key is later than that of the years to come.
      try await trio.good.client.write([("ahead", "later")], in: Household.store)
      try await eventually("a later write to win at the mended clock", seconds: 20) {
        try await trio.wrong.client.value(forKey: "ahead", in: Household.store) == "later"
      }
    }

    /// Back by ten years while it runs, and right again: stamps never go back, so its writes
    /// meanwhile are later than its earlier ones, and everything is exchanged in the end.
    @Test func `a clock that jumps back loses nothing and keeps the order`() async throws {
      let seed = testSeed("clock")
      let trio = try await Trio()
      try await trio.start()
      let ledger = Ledger()
      let writers = trio.household.members.indices.map { index in
        Writer(
          client: trio.household.members[index].client, node: index, seed: seed &+ UInt64(index),
          largeRate: nil)
      }
      try await ledger.whileWriting(writers) {
        for offset in ["-10y", "+0", "-3600", "+30", "+0"] {
          try await Task.sleep(for: .milliseconds(400))
          try Clocks.set(offset, in: trio.offset)
          try await trio.wrong.client.write([("order", .string(offset))], in: "order")
        }
      }
      // A clock that cannot be right follows any other, and says so.
      try await trio.household.stop(trio.wrong)
      try Clocks.set("-10y", in: trio.offset)
      try await trio.household.start(trio.wrong)
      try await eventually("the wrong one to follow another's time", seconds: 40) {
        try await trio.household.run(trio.wrong, "status").output.contains("behind: the time of")
      }
      try await trio.wrong.client.write([("order", "last")], in: "order")
      try await trio.goodOnesGoOn("order")
      try await trio.household.stop(trio.wrong)
      try Clocks.set("+0", in: trio.offset)
      try await trio.household.start(trio.wrong)
      let settled = try await trio.household.settle()
      try await eventually("the last write in order to win") {
        try await trio.good.client.value(forKey: "order", in: "order") == "last"
      }
      var history = ledger.history
      // While its clock was 30 s ahead, its writes win over the others' for that long.
      history.slack = .seconds(31)
      history.writes.append(contentsOf: Self.known("between", "order"))
      let problems = history.problems(try await trio.household.outcome())
      print(
        "clock: \(ledger.acknowledged) writes acknowledged while it jumped, settled after \(settled)"
      )
      expectNone(problems, seed: seed)
    }

    /// A device whose clock is not synchronised takes the time of one whose clock is, by up to a day.
    @Test func `a wrong clock gives way to a synchronised one`() async throws {
      let trio = try await Trio()
      let library = try Clocks.synchronisedLibrary(in: trio.household.root)
      let right = trio.household.root.appending(path: "right")
      try Clocks.set("+0", in: right)
      for member in [trio.good, trio.other] {
        member.environment = try Clocks.environment(offsetFile: right, isSynchronised: library)
        member.launcher = Clocks.launcher
      }
      try Clocks.set("+72000", in: trio.offset)
      try await trio.start()
      #expect(try await trio.good.client.status().clock.isSynchronised)
      #expect(try await !trio.wrong.client.status().clock.isSynchronised)
      try await trio.wrong.client.write([("taken", "over")], in: Household.store)
      for member in [trio.good, trio.other] {
        try await eventually("a write of the wrong clock at \(member.name)", seconds: 40) {
          try await member.client.value(forKey: "taken", in: Household.store) == "over"
        }
      }
      // Its stamp is of the time that was taken over: a write that follows it wins.
      try await trio.good.client.write([("taken", "later")], in: Household.store)
      try await eventually("a later write to win everywhere", seconds: 20) {
        try await trio.wrong.client.value(forKey: "taken", in: Household.store) == "later"
      }
    }

    /// A write that the test made beside the writers.
    private static func known(_ key: String, _ value: PropertyListValue) -> [HistoryWrite] {
      let now = ContinuousClock.now
      return [
        HistoryWrite(
          key: key, value: value, node: 0, transaction: 0, began: now, ended: now,
          isAcknowledged: true)
      ]
    }
  }
}
