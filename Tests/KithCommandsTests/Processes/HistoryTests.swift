import Foundation
import Glibc
import Kith
import KithTerminal
import KithTestSupport
import Testing

@testable import KithCommands

/// Tests of the judge: the histories that it lets pass, and those that it does not.
@Suite struct HistoryTests {
  private let start = ContinuousClock.now

  private func write(
    _ value: PropertyListValue?, node: Int, at milliseconds: Int, transaction: Int,
    key: String = "key"
  ) -> HistoryWrite {
    let began = start + .milliseconds(milliseconds)
    return HistoryWrite(
      key: key, value: value, node: node, transaction: transaction, began: began,
      ended: began + .milliseconds(1), isAcknowledged: true)
  }

  private func problems(
    _ writes: [HistoryWrite], shown: PropertyListValue?, refused: PropertyListValue...
  ) -> [String] {
    let names = Set(refused.map { History.Outcome.name("key", $0) })
    return History(writes: writes).problems(
      History.Outcome(
        shown: shown.map { [KeyValueStore.Key("key"): $0] } ?? [:], hidden: [:],
        refused: [[], names]))
  }

  @Test func `a write that lost to an earlier one is lost`() {
    let first = write("first", node: 0, at: 0, transaction: 1)
    let second = write("second", node: 1, at: 100, transaction: 2)
    #expect(problems([first, second], shown: "second").isEmpty)
    let found = problems([first, second], shown: "first")
    #expect(found.count == 1)
    #expect(found.first?.contains("key=second of node 1 was acknowledged and is lost") == true)
    #expect(problems([first, second], shown: "first", refused: "second").isEmpty)
    // So close to each other either may have the later stamp.
    let close = write("close", node: 1, at: 3, transaction: 3)
    #expect(problems([first, close], shown: "first").isEmpty)
  }

  @Test func `a large value is not printed whole`() {
    let large = PropertyListValue.string(String(repeating: "v", count: 180_000))
    let found = problems([write("first", node: 0, at: 0, transaction: 1)], shown: large)
    #expect(!found.isEmpty && found.allSatisfy { $0.count < 1_000 })
  }

  @Test func `whose place was taken by what was refused is told by that`() {
    let first = write("first", node: 0, at: 0, transaction: 1)
    let early = write("large", node: 1, at: 100, transaction: 2)
    let late = write("small", node: 1, at: 200, transaction: 3)
    #expect(problems([first, early, late], shown: "first", refused: "small").isEmpty)
    // Not of another node, nor of the same one before,
    for other in [
      write("small", node: 0, at: 200, transaction: 3),
      write("small", node: 1, at: 50, transaction: 3),
      // nor of another key.
      write("small", node: 1, at: 200, transaction: 3, key: "other"),
    ] {
      let told = other.value ?? "removed"
      #expect(!problems([first, early, other], shown: "first", refused: told).isEmpty)
    }
  }
}

@Suite("History and undo", .timeLimit(.minutes(5)))
struct UndoTests {
  /// The values of `kith history --json`, newest first; nil: the key was missing.
  private func history(
    of key: String?, _ household: Household, _ member: Household.Member
  ) async throws -> [String?] {
    let words = ["history"] + (key.map { [$0] } ?? []) + ["--json"]
    let result = try await KithProcess.run(
      words + ["--directory", member.directory.path], in: household.root)
    let document = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
    let values = (document as? [String: Any])?["values"] as? [[String: Any]] ?? []
    return values.map { $0["value"] as? String }
  }

  @Test func `a key gets back what it showed, with and without a node`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    for hasNode in [false, true] {
      if hasNode { try await household.start(member) }
      let key = hasNode ? "with" : "without"
      for value in ["light", "dark"] {
        _ = try await household.run(member, "set", key, value)
      }
      let history = try await history(of: key, household, member)
      #expect(history == ["light", nil])
      let undone = try await household.run(member, "undo", key)
      #expect(undone.status == 0 && undone.output == "\(key) = light\n", "\(undone)")
      #expect(try await household.run(member, "get", key).output == "light\n")
      let redone = try await household.run(member, "undo", key, "--json")
      #expect(redone.output.contains(#""value": "dark""#), "\(redone)")
      let table = try await household.run(member, "history", key).output
      let numbers = table.split(separator: "\n").dropFirst().compactMap {
        $0.split(separator: " ").dropFirst().first.map(String.init)
      }
      #expect(numbers.count == 4, "\(table)")
      let first = try #require(numbers.last)
      let removed = try await household.run(member, "undo", key, "--to", first)
      #expect(removed.status == 0 && removed.output == "\(key) removed\n", "\(removed)")
      #expect(try await household.run(member, "get", key).status == 2)
    }
    #expect(try await household.run(member, "history", "--limit", "0").talk.isEmpty)
    let limited = try await household.run(member, "history", "--limit", "1").output
    #expect(limited.split(separator: "\n").count == 2, "\(limited)")
  }

  @Test func `nothing to undo is a missing key`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    _ = try await household.run(member, "set", "k", "1")
    for words in [["none"], ["k", "--to", "99"]] {
      let result = try await KithProcess.run(
        ["undo"] + words + ["--directory", member.directory.path], in: household.root)
      #expect(result.status == CommandStatus.notFound.rawValue && result.output.isEmpty)
      #expect(result.talk.hasPrefix("kith: nothing to undo: "), "\(result)")
    }
    #expect(try await household.run(member, "get", "k").output == "1\n")
    let none = try await household.run(member, "history", "none")
    #expect(none.status == 0 && none.output.isEmpty, "\(none)")
    #expect(none.talk == "No past value is kept.\n")
  }

  @Test func `run switches it off, and the device remembers it`() async throws {
    let household = try Household()
    let member = try await household.create("alpha")
    for value in ["1", "2"] { _ = try await household.run(member, "set", "k", value) }
    #expect(try await history(of: nil, household, member).count == 2)
    for (option, count) in [("--no-history", 0), ("--history", 1)] {
      let node = try KithProcess(
        [
          "run", option, "--no-discovery", "--listen", "127.0.0.1:0", "--directory",
          member.directory.path,
        ], in: household.root)
      try await eventually("ready") { node.saidSoFar.contains("kith: ready") }
      _ = try await household.run(member, "set", "k", "\(option) with a node")
      node.send(SIGTERM)
      _ = try await node.wait()
      #expect(try await history(of: nil, household, member).count == count, "\(option)")
      let status = try await household.run(member, "status").output
      #expect(status.contains("history    off; keep it with") == (count == 0), "\(status)")
      let document = try await household.run(member, "status", "--json").output
      #expect(document.contains(#""keepsHistory": \#(count > 0)"#), "\(document)")
      if count == 0 {
        _ = try await household.run(member, "set", "k", "without")
        #expect(try await history(of: nil, household, member).isEmpty)
      }
    }
  }
}
