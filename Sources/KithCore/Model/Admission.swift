/// A value that a key may show, by its role in the key's slot (`Docs/Protocol/quota.md`).
package enum ShownStep: String, Hashable, Sendable {
  case runnerUpFallback = "runner-up's fallback"
  case runnerUp = "runner-up"
  case fallback
  case value
}

struct AdmissionStep: Hashable {
  var kind: ShownStep
  var size: Int
  var claim: Claim
}

/// All steps of one key, the least wanted first.
struct AdmissionOffer: Hashable {
  var keyBytes: Int
  var steps: [AdmissionStep]
}

extension Slot {
  /// The key's steps, or nil if the key is removed.
  var offer: AdmissionOffer? {
    guard let value = newest.entry.value else { return nil }
    var steps: [AdmissionStep] = []
    if let second = runnerUp?.entry {
      // A runner-up that is a removal offers nothing, not even its fallback.
      if let value = second.value {
        if let fallback = second.fallback {
          steps.append(
            .init(kind: .runnerUpFallback, size: fallback.value.size, claim: fallback.claim))
        }
        steps.append(.init(kind: .runnerUp, size: value.size, claim: second.claim))
      }
    } else if let fallback = newest.entry.fallback {
      steps.append(.init(kind: .fallback, size: fallback.value.size, claim: fallback.claim))
    }
    steps.append(.init(kind: .value, size: value.size, claim: newest.entry.claim))
    return AdmissionOffer(keyBytes: newest.entry.key.size, steps: steps)
  }
}

/// Decides which values are shown: a pure function, so that equal states show the same on every
/// peer (`Docs/Protocol/quota.md`).
enum Admission {
  /// The step that each offer shows, or nil for none; O(*s* log *s*) in the steps.
  static func shown(of offers: [AdmissionOffer], under policy: Policy) -> [ShownStep?] {
    if everythingFits(offers, policy) { return offers.map { $0.steps.last?.kind } }
    var admitter = Admitter(offers: offers, policy: policy)
    return admitter.run()
  }

  private static func everythingFits(_ offers: [AdmissionOffer], _ policy: Policy) -> Bool {
    var total = 0
    for offer in offers {
      guard let newest = offer.steps.last else { continue }
      guard policy.permits(keyBytes: offer.keyBytes, valueBytes: newest.size) else { return false }
      total += newest.size
    }
    return total <= policy.totalBytes && offers.count <= policy.keys
  }
}

/// Rule 2: repeatedly admits the earliest group that fits, found in a tree of each group's current
/// growth.
private struct Admitter {
  /// A key's most wanted step in one group; its other steps in the group never show.
  private struct Part {
    var group: Int
    var offer: Int
    var step: Int
  }

  private let offers: [AdmissionOffer]
  private let policy: Policy
  private var parts: [Part] = []
  private var partsOfGroup: [Range<Int>] = []
  private var partsOfOffer: [[Int]]
  /// The growth if a group were admitted now.
  private var bytesToAdd: [Int] = []
  private var keysToAdd: [Int] = []
  private var isSettled: [Bool] = []
  /// The index of the step that each offer shows.
  private var shownStep: [Int?]
  private var bytes = 0
  private var keys = 0

  init(offers: [AdmissionOffer], policy: Policy) {
    self.offers = offers
    self.policy = policy
    shownStep = Array(repeating: nil, count: offers.count)
    partsOfOffer = Array(repeating: [], count: offers.count)
    group(offers)
  }

  private mutating func group(_ offers: [AdmissionOffer]) {
    var all: [(claim: Claim, offer: Int, step: Int)] = []
    for (index, offer) in offers.enumerated() {
      for (step, content) in offer.steps.enumerated() { all.append((content.claim, index, step)) }
    }
    all.sort { left, right in
      left.claim != right.claim
        ? left.claim < right.claim
        : (left.offer, left.step) < (right.offer, right.step)
    }
    var start = 0
    for (position, (claim, offer, step)) in all.enumerated() {
      let isNew = position == 0 || all[position - 1].claim != claim
      if isNew {
        if position > 0 { partsOfGroup.append(start..<parts.count) }
        start = parts.count
        bytesToAdd.append(0)
        keysToAdd.append(0)
        isSettled.append(false)
      }
      let group = bytesToAdd.count - 1
      let size = offers[offer].steps[step].size
      // A value or key over the policy excludes its whole group.
      if !policy.permits(keyBytes: offers[offer].keyBytes, valueBytes: size) {
        isSettled[group] = true
      }
      if !isNew, parts[parts.count - 1].offer == offer {
        // Of one key's steps in a group, only the most wanted one can show.
        bytesToAdd[group] += size - offers[offer].steps[parts[parts.count - 1].step].size
        parts[parts.count - 1].step = step
      } else {
        partsOfOffer[offer].append(parts.count)
        parts.append(Part(group: group, offer: offer, step: step))
        bytesToAdd[group] += size
        keysToAdd[group] += 1
      }
    }
    if !all.isEmpty { partsOfGroup.append(start..<parts.count) }
  }

  mutating func run() -> [ShownStep?] {
    var tree = LeastTree(bytesToAdd.indices.map { isSettled[$0] ? .max : bytesToAdd[$0] })
    while let group = tree.first(atMost: policy.totalBytes - bytes) {
      // Too many keys. Their number never falls, so the group waits until one of its keys shows a
      // step.
      guard keys + keysToAdd[group] <= policy.keys else {
        tree[group] = .max
        continue
      }
      isSettled[group] = true
      tree[group] = .max
      bytes += bytesToAdd[group]
      keys += keysToAdd[group]
      for part in partsOfGroup[group] { show(parts[part], in: &tree) }
    }
    return shownStep.indices.map { index in shownStep[index].map { offers[index].steps[$0].kind } }
  }

  /// Shows a step unless its key shows a more wanted one, and updates the key's other groups.
  private mutating func show(_ shown: Part, in tree: inout LeastTree) {
    let old = shownStep[shown.offer]
    guard shown.step > old ?? -1 else { return }
    let steps = offers[shown.offer].steps
    func toAdd(_ step: Int, over shown: Int?) -> (bytes: Int, keys: Int) {
      guard let shown else { return (steps[step].size, 1) }
      return step > shown ? (steps[step].size - steps[shown].size, 0) : (0, 0)
    }
    shownStep[shown.offer] = shown.step
    for part in partsOfOffer[shown.offer].map({ parts[$0] }) where !isSettled[part.group] {
      let before = toAdd(part.step, over: old)
      let after = toAdd(part.step, over: shown.step)
      bytesToAdd[part.group] += after.bytes - before.bytes
      keysToAdd[part.group] += after.keys - before.keys
      tree[part.group] = bytesToAdd[part.group]
    }
  }
}

/// A row of numbers that finds the first one within a limit in O(log *n*).
private struct LeastTree {
  /// The minimum of each subtree; the leaves are the upper half.
  private var least: [Int]
  private let leaves: Int

  init(_ numbers: [Int]) {
    var leaves = 1
    while leaves < numbers.count { leaves *= 2 }
    self.leaves = leaves
    least = Array(repeating: .max, count: 2 * leaves)
    for (index, number) in numbers.enumerated() { least[leaves + index] = number }
    for node in stride(from: leaves - 1, to: 0, by: -1) {
      least[node] = min(least[2 * node], least[2 * node + 1])
    }
  }

  subscript(index: Int) -> Int {
    get { least[leaves + index] }
    set {
      var node = leaves + index
      least[node] = newValue
      while node > 1 {
        node /= 2
        least[node] = min(least[2 * node], least[2 * node + 1])
      }
    }
  }

  func first(atMost limit: Int) -> Int? {
    guard least[1] <= limit else { return nil }
    var node = 1
    while node < leaves { node = least[2 * node] <= limit ? 2 * node : 2 * node + 1 }
    return node - leaves
  }
}
