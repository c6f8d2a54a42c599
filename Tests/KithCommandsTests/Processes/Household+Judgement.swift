import Kith
import KithTestSupport

extension Household {
  /// The store that tests write.
  static let store = "default"

  /// Waits until everything is everywhere: nothing waits to be published, and all have the same state
  /// and print the same bytes; says how long that took. What is hidden stands in no export: nodes may
  /// print the same and yet not have exchanged it.
  @discardableResult
  func settle(seconds: Double = 120) async throws -> Duration {
    let began = ContinuousClock.now
    try await eventually("all nodes to have the same", seconds: seconds, every: 50) {
      var digests: Set<[String]> = []
      for member in members {
        let stores = try await member.client.report().stores
        guard stores.allSatisfy({ $0.drafts == 0 }) else { return false }
        digests.insert(stores.map(\.digest))
      }
      guard digests.count == 1 else { return false }
      var exports: Set<String> = []
      for member in members { exports.insert(try await export(member)) }
      return exports.count == 1
    }
    return ContinuousClock.now - began
  }

  /// What all nodes show, what is hidden, and what each was told was refused.
  func outcome() async throws -> History.Outcome {
    let client = members[0].client
    var hidden: [KeyValueStore.Key: PropertyListValue] = [:]
    for item in try await client.hiddenEntries(in: Self.store) {
      hidden[KeyValueStore.Key(item.key)] = item.value
    }
    var refused: [Set<String>] = []
    for member in members {
      let refusals = try await member.client.refusals(in: Self.store, takingThrough: nil)
      refused.append(
        Set(refusals.flatMap(\.writes).map { History.Outcome.name($0.key, $0.value) }))
    }
    return History.Outcome(
      shown: try await client.values(in: Self.store), hidden: hidden, refused: refused)
  }

  /// Waits until each member has met another one.
  func awaitMeeting() async throws {
    for member in members {
      try await eventually("\(member.name)'s first sync") {
        try await !member.client.report().peers.isEmpty
      }
    }
  }
}
