import Kith
import KithTestSupport

extension Household {
  /// The store that tests write.
  static let store = "default"

  /// Waits until all nodes have everything: no draft waits to be published, and all have the same
  /// state and print the same bytes. Returns how long that took. An export holds no hidden values:
  /// nodes may print the same before they have exchanged those.
  @discardableResult
  func settle(seconds: Double = 120) async throws -> Duration {
    let began = ContinuousClock.now
    try await eventually("all nodes to have the same", seconds: seconds, every: 50) {
      var digests: Set<[String]> = []
      for member in members {
        let stores = try await member.client.status().stores
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

  /// The values that all nodes show, the hidden ones, and the refusals that each node reported.
  func outcome() async throws -> History.Outcome {
    let client = members[0].client
    var hidden: [KeyValueStore.Key: PropertyListValue] = [:]
    for item in try await client.hiddenEntries(in: Self.store) {
      hidden[item.key] = item.value
    }
    var refused: [Set<String>] = []
    for member in members {
      let refusals = try await member.client.refusals(in: Self.store, takingThrough: nil)
      refused.append(
        Set(refusals.flatMap(\.writes).map { History.Outcome.name($0.key.text, $0.value) }))
    }
    return History.Outcome(
      shown: try await client.values(in: Self.store), hidden: hidden, refused: refused)
  }

  /// Waits until each member has met another one.
  func awaitMeeting() async throws {
    for member in members {
      try await eventually("\(member.name)'s first sync") {
        try await !member.client.status().peers.isEmpty
      }
    }
  }
}
