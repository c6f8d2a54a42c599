import Kith

extension Household {
  /// The store that tests write.
  static let store = "default"

  /// Waits until all exports are the same bytes and nothing waits to be published; says how long
  /// that took.
  @discardableResult
  func settle(seconds: Double = 120) async throws -> Duration {
    let began = ContinuousClock.now
    try await eventually("all nodes to show the same", seconds: seconds, every: 50) {
      var exports: Set<String> = []
      for member in members {
        let report = try await member.client.report()
        guard report.stores.allSatisfy({ $0.drafts == 0 }) else { return false }
        exports.insert(try await export(member))
      }
      return exports.count == 1
    }
    return ContinuousClock.now - began
  }

  /// What all nodes show, what is hidden, and what each was told was refused.
  func outcome() async throws -> History.Outcome {
    let client = members[0].client
    var hidden: [Key: PropertyListValue] = [:]
    for item in try await client.hiddenEntries(in: Self.store) {
      hidden[Key(item.key)] = item.value
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

  /// Waits until no member's first pull is still to come.
  func awaitFirstSync() async throws {
    for member in members {
      try await eventually("\(member.name)'s first sync") {
        try await !member.client.report().isProvisional
      }
    }
  }
}
