internal import HeapModule

/// What a key may show (design, section 3): its steps, by kind.
public enum ShownStep: String, Hashable, Sendable {
  /// The runner-up's fallback.
  case runnerUpFallback = "runner-up's fallback"
  /// The runner-up.
  case runnerUp = "runner-up"
  /// The newest entry's fallback.
  case fallback
  /// The newest entry.
  case value
}

/// One thing that a key offers to show, under a claim.
struct AdmissionStep: Hashable {
  var kind: ShownStep
  var size: Int
  var claim: Claim
}

/// All that one key offers, least wanted first. A key whose newest entry is a removal offers
/// nothing and takes no part.
struct AdmissionOffer: Hashable {
  var keyBytes: Int
  var steps: [AdmissionStep]
}

extension Slot {
  /// What the key offers, or nil where it is removed.
  var offer: AdmissionOffer? {
    guard let value = newest.entry.value else { return nil }
    var steps: [AdmissionStep] = []
    if let second = runnerUp?.entry {
      // A runner-up that is a removal offers nothing: neither itself nor what came before it.
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

/// Decides what is shown under a policy: a pure function of what the keys offer, so that all peers
/// with the same state show the same thing (design, section 3).
enum Admission {
  /// What each offer shows; nil: nothing.
  ///
  /// - Complexity: O(*s* log *s*) in the number of steps where admissions only take room; each
  ///   one that frees room looks again at the groups refused before it.
  static func shown(of offers: [AdmissionOffer], under policy: Policy) -> [ShownStep?] {
    if everythingFits(offers, policy) { return offers.map { $0.steps.last?.kind } }
    var admitter = Admitter(offers: offers, policy: policy)
    return admitter.run()
  }

  /// Rule 1: nothing is hidden without need.
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

/// Rule 2, at work.
private struct Admitter {
  /// A step of an offer.
  private struct Member {
    var offer: Int
    var step: Int
  }

  private let offers: [AdmissionOffer]
  private let policy: Policy
  /// Steps with equal claims, earliest claim first; of one offer, the most wanted last.
  private var groups: [[Member]] = []
  private var groupsOfOffer: [[Int]]
  /// The step that each offer shows, as an index.
  private var shownStep: [Int?]
  private var total = 0
  private var count = 0

  init(offers: [AdmissionOffer], policy: Policy) {
    self.offers = offers
    self.policy = policy
    shownStep = Array(repeating: nil, count: offers.count)
    groupsOfOffer = Array(repeating: [], count: offers.count)
    var all: [(claim: Claim, member: Member)] = []
    for (index, offer) in offers.enumerated() {
      for (step, content) in offer.steps.enumerated() {
        all.append((content.claim, Member(offer: index, step: step)))
      }
    }
    all.sort { left, right in
      if left.claim != right.claim { return left.claim < right.claim }
      return (left.member.offer, left.member.step) < (right.member.offer, right.member.step)
    }
    var previous: Claim?
    for (claim, member) in all {
      if claim == previous {
        groups[groups.count - 1].append(member)
      } else {
        groups.append([member])
      }
      previous = claim
      if groupsOfOffer[member.offer].last != groups.count - 1 {
        groupsOfOffer[member.offer].append(groups.count - 1)
      }
    }
  }

  /// Admits, again and again, the earliest group that can be. A group that could not be is looked
  /// at again only after an admission that may have changed the answer.
  mutating func run() -> [ShownStep?] {
    var refused = Set<Int>()
    var waiting = Heap(groups.indices.filter { isPermitted(groups[$0]) })
    while let group = waiting.popMin() {
      guard let change = change(admitting: group) else {
        refused.insert(group)
        continue
      }
      for member in groups[group] where isMoreWanted(member) {
        shownStep[member.offer] = member.step
      }
      total += change.bytes
      count += change.keys
      let again =
        change.bytes < 0
        ? refused
        : Set(groups[group].flatMap { groupsOfOffer[$0.offer] }).intersection(refused)
      refused.subtract(again)
      waiting.insert(contentsOf: again)
    }
    return shownStep.indices.map { index in shownStep[index].map { offers[index].steps[$0].kind } }
  }

  /// Whether every step of a group keeps the policy's limits on its own key and size.
  private func isPermitted(_ group: [Member]) -> Bool {
    group.allSatisfy { member in
      let offer = offers[member.offer]
      return policy.permits(keyBytes: offer.keyBytes, valueBytes: offer.steps[member.step].size)
    }
  }

  private func isMoreWanted(_ member: Member) -> Bool {
    guard let shown = shownStep[member.offer] else { return true }
    return member.step > shown
  }

  /// By how much bytes and keys would grow, or nil where they would exceed the limits.
  private func change(admitting group: Int) -> (bytes: Int, keys: Int)? {
    var bytes = 0
    var keys = 0
    let members = groups[group]
    for (position, member) in members.enumerated() where isMoreWanted(member) {
      // Of several steps of one offer, which stand side by side, only the most wanted shows.
      if position + 1 < members.count, members[position + 1].offer == member.offer { continue }
      let offer = offers[member.offer]
      bytes += offer.steps[member.step].size
      if let shown = shownStep[member.offer] {
        bytes -= offer.steps[shown].size
      } else {
        keys += 1
      }
    }
    guard total + bytes <= policy.totalBytes, count + keys <= policy.keys else { return nil }
    return (bytes, keys)
  }
}
