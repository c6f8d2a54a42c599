import Foundation
import Kith
import KithTestSupport
import Testing

/// Each reason for which a store shows something else, caused between real nodes
/// (`Docs/Protocol/drafts.md`); `accountChange` is in `AccountsTests`.
@Suite(.timeLimit(.minutes(5)))
struct NodeReasonTests {
  private static let store = "com.example.test"

  @Test func `two offline devices overfill a store, and the loser's program gets its values back`()
    async throws
  {
    let nodes = try await Nodes()
    let first = nodes.first
    let second = try await running(first) { try await nodes.join("second", by: first) }
    let policy = KeyValueStore.Policy(totalBytes: 1_000)
    let one = try first.store(Self.store, policy: policy)
    let other = try second.store(Self.store, policy: policy)
    let third = try await running(first, second) {
      try await second.meetsPeer()
      return try await nodes.join("third", by: first)
    }
    let picture = PropertyListValue.data(Data(repeating: 1, count: 600))
    // Published to the third device while the second is away.
    try await running(first, third) {
      _ = try third.store(Self.store, policy: policy)
      try await third.meetsPeer()
      try one.set(picture, forKey: "first's")
      try await eventually { try !one.syncReport.hasUnpublishedWrites }
    }
    let changes = other.changes
    try await other.commit {
      $0.set(picture, forKey: "second's")
      $0.set("with it", forKey: "caption")
    }
    try await running(first, second) { try await eventually { try !other.refusals.isEmpty } }
    #expect(other.dictionary == one.dictionary)
    #expect(other.dictionary.keys.map(\.text) == ["first's"])
    let refusal = try #require(try other.refusals.first)
    #expect(try other.takeRefusals().count == 1)
    #expect(try other.refusals.isEmpty)
    for node in [first, second, third] { try node.close() }
    var reasons: [KeyValueStore.ChangeReason: Set<KeyValueStore.Key>] = [:]
    for await change in changes {
      reasons[change.reason, default: []].formUnion(change.keys)
      reasons[change.reason, default: []].formUnion(change.superseded)
    }
    #expect(reasons[.quotaViolationChange] == ["caption", "second's"])
    #expect(reasons[.externalChange] == ["first's"])
    #expect(refusal.reason == .quota)
    #expect(
      Dictionary(uniqueKeysWithValues: refusal.writes.map { ($0.key, $0.value) }) == [
        "second's": picture, "caption": "with it",
      ])
  }
}
