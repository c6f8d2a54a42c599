/// The bounds of drafts and refusals. What waits for a peer, or for the program to be taken, grows
/// with what the program writes.
extension StoreReplica {
  /// Why there is no room to keep a transaction as a draft, or for its refusal later; nil where
  /// there is, and for removals alone, which are always accepted.
  func lackOfRoom(for operations: [Operation]) -> WriteError? {
    guard operations.contains(where: { $0.value != nil }) else { return nil }
    let limit = policy.room(factor: Limits.draftFactor)
    guard refusalBytes <= limit else {
      return .refusalsNotTaken(bytes: refusalBytes, limit: limit)
    }
    let size = operations.keptBytes
    guard draftBytes + size > limit else { return nil }
    let draft = Draft(ordinal: nextDraft, clock: .zero, operations: operations)
    let forgettable = draftsToForget(for: draft)
    let left = drafts.reduce(size) {
      forgettable.contains($1.ordinal) ? $0 : $0 + $1.operations.keptBytes
    }
    return left <= limit ? nil : .tooManyDrafts(bytes: left, limit: limit)
  }

  /// Where the draft is that a new one covers, and whose place and ordinal it takes: at the end it
  /// could be refused for what stands between, and the older one would be lost with it.
  ///
  /// - Complexity: O(log *n*) in the drafts.
  func indexOfDraft(coveredBy draft: Draft) -> Int? {
    guard draft.keys.count == 1, let ordinal = draftOfKey[draft.keys[0]] else { return nil }
    var (low, high) = (drafts.startIndex, drafts.endIndex)
    while low < high {
      let middle = (low + high) / 2
      if drafts[middle].ordinal < ordinal { low = middle + 1 } else { high = middle }
    }
    guard low < drafts.endIndex, drafts[low].ordinal == ordinal, draft.covers(drafts[low])
    else { return nil }
    return low
  }

  /// Drafts that a new one makes unnecessary: those that it covers, and, where there are many, all
  /// of which every key is written by later ones.
  func draftsToForget(for draft: Draft) -> Set<UInt64> {
    let isCrowded =
      drafts.count >= Limits.drafts
      || draftBytes + draft.operations.keptBytes > policy.room(factor: Limits.draftFactor)
    let keys = Set(draft.keys)
    let latest = Set(keys.compactMap { draftOfKey[$0] })
    guard isCrowded || !latest.isEmpty else { return [] }
    var ordinals = Set<UInt64>()
    for older in drafts {
      // Whether later drafts, with this one, write every key that the older one writes.
      func isRewritten() -> Bool {
        older.keys.allSatisfy { keys.contains($0) || draftOfKey[$0] != older.ordinal }
      }
      if latest.contains(older.ordinal) && draft.covers(older) || isCrowded && isRewritten() {
        ordinals.insert(older.ordinal)
      }
    }
    return ordinals
  }
}

extension Draft {
  /// The keys that it writes.
  var keys: [Key] { operations.map { Key($0.key) } }
}
