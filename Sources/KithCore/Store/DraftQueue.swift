/// The local transactions of a store that wait to be published, in their order, and how far storage
/// holds them.
///
/// The invariant: ordinals rise from draft to draft; ``bytes`` and the latest draft of each key
/// follow from the drafts; once the mutations of ``save(in:)`` are committed, storage holds exactly
/// these drafts.
struct DraftQueue {
  /// The drafts, oldest first. One that replaced an older one has that one's place.
  private(set) var drafts: [Draft] = []
  /// The size of all drafts, in bytes.
  private(set) var bytes = 0
  /// The latest draft of each key, by ordinal.
  private var latest: [Key: UInt64] = [:]
  /// Ordinals under which storage holds a draft.
  private var stored: Set<UInt64> = []
  /// Ordinals under which storage and queue differ.
  private var unsaved: Set<UInt64> = []
  private var next: UInt64 = 1

  /// The result of adding a draft.
  enum OnAdd: Equatable {
    /// It is the last.
    case appended
    /// It has the place and the ordinal of this draft, which it replaces.
    case replaced(Draft)
  }

  var isEmpty: Bool { drafts.isEmpty }

  /// Whether storage holds exactly these drafts.
  var isSaved: Bool { unsaved.isEmpty }

  // MARK: Adding

  /// The size of all drafts with one more, in bytes, without those that it makes unnecessary.
  ///
  /// - Complexity: O(1) if the drafts with the new one are within the limits.
  func bytes(adding operations: [Operation], limit: Int) -> Int {
    let size = operations.keptBytes
    guard bytes + size > limit else { return bytes + size }
    let draft = Draft(ordinal: next, clock: .zero, operations: operations)
    var unneeded = rewritten(by: draft, limit: limit)
    if let index = index(coveredBy: draft) { unneeded.insert(drafts[index].ordinal) }
    return drafts.reduce(size) {
      unneeded.contains($1.ordinal) ? $0 : $0 + $1.operations.keptBytes
    }
  }

  /// Adds a draft, and forgets those that it makes unnecessary: above `limit` bytes of drafts, those
  /// whose keys are all written later.
  @discardableResult
  mutating func add(_ operations: [Operation], clock: HybridTime, limit: Int) -> OnAdd {
    var draft = Draft(ordinal: next, clock: clock, operations: operations)
    let covered = index(coveredBy: draft).map { drafts[$0] }
    for ordinal in rewritten(by: draft, limit: limit) where ordinal != covered?.ordinal {
      guard let index = index(of: ordinal) else { continue }
      remove(at: index)
    }
    bytes += operations.keptBytes
    defer {
      unsaved.insert(draft.ordinal)
      for key in draft.keys { latest[key] = draft.ordinal }
    }
    guard let covered, let index = index(of: covered.ordinal) else {
      next += 1
      drafts.append(draft)
      return .appended
    }
    draft.ordinal = covered.ordinal
    bytes -= covered.operations.keptBytes
    drafts[index] = draft
    return .replaced(covered)
  }

  /// The draft that a new one replaces: the new one takes its place in the queue. At the end of the
  /// queue it could be refused because of a draft between them, and the older write would be lost
  /// with it.
  private func index(coveredBy draft: Draft) -> Int? {
    guard draft.keys.count == 1, let index = latest[draft.keys[0]].flatMap(index(of:)) else {
      return nil
    }
    return draft.covers(drafts[index]) ? index : nil
  }

  /// - Complexity: O(log *n*) in the drafts.
  private func index(of ordinal: UInt64) -> Int? {
    var (low, high) = (drafts.startIndex, drafts.endIndex)
    while low < high {
      let middle = (low + high) / 2
      if drafts[middle].ordinal < ordinal { low = middle + 1 } else { high = middle }
    }
    return low < drafts.endIndex && drafts[low].ordinal == ordinal ? low : nil
  }

  /// If there are many drafts: the drafts whose keys are all written again by later drafts or by a
  /// new one.
  private func rewritten(by draft: Draft, limit: Int) -> Set<UInt64> {
    guard drafts.count >= Limits.drafts || bytes + draft.operations.keptBytes > limit else {
      return []
    }
    let keys = Set(draft.keys)
    return Set(
      drafts.lazy.filter { older in
        older.keys.allSatisfy { keys.contains($0) || latest[$0] != older.ordinal }
      }.map(\.ordinal))
  }

  private mutating func remove(at index: Int) {
    let draft = drafts.remove(at: index)
    bytes -= draft.operations.keptBytes
    noteRemoval(of: draft)
  }

  private mutating func noteRemoval(of draft: Draft) {
    if stored.contains(draft.ordinal) {
      unsaved.insert(draft.ordinal)
    } else {
      unsaved.remove(draft.ordinal)
    }
  }

  // MARK: Changing

  /// Gives every draft another form under its ordinal; if that is nil, drops the draft.
  mutating func update(_ form: (Draft) -> Draft?) {
    let before = drafts
    (drafts, bytes, latest) = ([], 0, [:])
    for old in before {
      guard let new = form(old) else {
        noteRemoval(of: old)
        continue
      }
      drafts.append(new)
      bytes += new.operations.keptBytes
      for key in new.keys { latest[key] = new.ordinal }
      if new != old { unsaved.insert(new.ordinal) }
    }
  }

  /// Stamps the drafts again that are not earlier than a reading, in the order of their stamps.
  mutating func restamp(from first: HybridTime, with clock: inout TimeKeeper) {
    var fresh: [UInt64: HybridTime] = [:]
    for draft in drafts.filter({ $0.clock >= first }).sorted(by: { $0.clock < $1.clock }) {
      fresh[draft.ordinal] = clock.tick()
    }
    guard !fresh.isEmpty else { return }
    update { draft in
      var draft = draft
      draft.clock = fresh[draft.ordinal] ?? draft.clock
      return draft
    }
  }

  // MARK: Storage

  /// The mutations after which storage holds exactly these drafts.
  mutating func save(in store: StoreIdentifier) -> [Mutation] {
    guard !unsaved.isEmpty else { return [] }
    let written = drafts.filter { unsaved.contains($0.ordinal) }
    let removed = unsaved.intersection(stored).subtracting(written.map(\.ordinal))
    stored = Set(drafts.map(\.ordinal))
    unsaved = []
    return removed.sorted().map { .removeDraft(store, $0) }
      + written.map { .putDraft(store, $0.ordinal, $0.encoded()) }
  }

  /// Forgets all drafts: they are published. Returns the mutations for storage.
  mutating func removeAll(in store: StoreIdentifier) -> [Mutation] {
    update { _ in nil }
    return save(in: store)
  }

  /// Takes back a draft from storage, in the order of their ordinals.
  mutating func restore(_ draft: Draft) {
    drafts.append(draft)
    bytes += draft.operations.keptBytes
    for key in draft.keys { latest[key] = draft.ordinal }
    stored.insert(draft.ordinal)
    next = max(next, draft.ordinal + 1)
  }
}

extension Draft {
  /// The keys that it writes.
  var keys: [Key] { operations.map { Key($0.key) } }
}
