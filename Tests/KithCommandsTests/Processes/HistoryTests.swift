import Kith
import Testing

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
      // nor with another key, nor if it was larger: then the earlier one would have stayed.
      write("larger", node: 1, at: 200, transaction: 3),
    ] {
      let told = other.value ?? "removed"
      #expect(!problems([first, early, other], shown: "first", refused: told).isEmpty)
    }
    let beside = write("beside", node: 1, at: 200, transaction: 3, key: "other")
    let found = problems([first, early, late, beside], shown: "first", refused: "small")
    #expect(found.contains { $0.contains("key=large of node 1 was acknowledged and is lost") })
  }
}
