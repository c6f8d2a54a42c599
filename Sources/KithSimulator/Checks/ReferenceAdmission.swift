internal import KithCore

/// A slow model of `Docs/Protocol/quota.md`, sentence by sentence. Shares no code with the product.
enum ReferenceAdmission {
  /// The steps of a key, least wanted first.
  private struct Step {
    var key: Key
    var rank: Int
    var kind: ShownStep
    var value: EncodedValue
    var claim: Claim
  }

  /// Returns what each key shows, from its newest entry and runner-up.
  ///
  /// - Complexity: O(*g*² *s*) in groups and steps.
  static func shown(
    of slots: [Key: (newest: Entry, runnerUp: Entry?)], under policy: Policy
  ) -> [Key: StoreInspection.Shown] {
    let newest = slots.values.map(\.newest).filter { !$0.isRemoval }
    let total = newest.reduce(0) { $0 + ($1.value?.size ?? 0) }
    let allFit = newest.allSatisfy { fits($0.key, $0.value, policy) }
    if allFit && total <= policy.totalBytes && newest.count <= policy.keys {
      var shown: [Key: StoreInspection.Shown] = [:]
      for entry in newest { shown[entry.key] = entry.value.map { .init(step: .value, value: $0) } }
      return shown
    }
    return admitted(slots.values.flatMap { steps($0.newest, $0.runnerUp) }, policy)
  }

  private static func fits(_ key: Key, _ value: EncodedValue?, _ policy: Policy) -> Bool {
    Array(key.text.utf8).count <= policy.keyBytes && (value?.bytes.count ?? 0) <= policy.valueBytes
  }

  private static func steps(_ newest: Entry, _ runnerUp: Entry?) -> [Step] {
    guard let value = newest.value else { return [] }
    var steps: [Step] = []
    func add(_ kind: ShownStep, _ value: EncodedValue, _ claim: Claim) {
      steps.append(
        Step(key: newest.key, rank: steps.count, kind: kind, value: value, claim: claim))
    }
    if let runnerUp {
      if let second = runnerUp.value {
        if let fallback = runnerUp.fallback {
          add(.runnerUpFallback, fallback.value, fallback.claim)
        }
        add(.runnerUp, second, runnerUp.claim)
      }
    } else if let fallback = newest.fallback {
      add(.fallback, fallback.value, fallback.claim)
    }
    add(.value, value, newest.claim)
    return steps
  }

  private static func admitted(
    _ steps: [Step], _ policy: Policy
  ) -> [Key: StoreInspection.Shown] {
    var groups: [Claim: [Step]] = [:]
    for step in steps { groups[step.claim, default: []].append(step) }
    var waiting = groups.keys.sorted()
    var shown: [Key: Step] = [:]
    var hasAdmitted = true
    while hasAdmitted {
      hasAdmitted = false
      for (index, claim) in waiting.enumerated() {
        guard let group = groups[claim],
          group.allSatisfy({ fits($0.key, $0.value, policy) })
        else { continue }
        var after = shown
        for step in group where after[step.key].map({ $0.rank < step.rank }) ?? true {
          after[step.key] = step
        }
        let bytes = after.values.reduce(0) { $0 + $1.value.bytes.count }
        guard bytes <= policy.totalBytes, after.count <= policy.keys else { continue }
        shown = after
        waiting.remove(at: index)
        hasAdmitted = true
        break
      }
    }
    return shown.mapValues { .init(step: $0.kind, value: $0.value) }
  }
}
