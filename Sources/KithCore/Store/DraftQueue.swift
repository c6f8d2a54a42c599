/// The drafts of a store, and how storage differs from them.
///
/// Ordinals rise; ``bytes`` and ``latest`` follow from the drafts. Once the mutations of
/// ``save(in:)`` are committed, storage holds exactly these drafts.
struct DraftQueue {
  /// Oldest first. A draft that replaced an older one has its place.
  private(set) var drafts: [Draft] = []
  private(set) var bytes = 0
  /// The ordinal of each key's latest draft.
  private var latest: [Key: UInt64] = [:]
  /// Ordinals of the drafts in storage.
  private var stored: Set<UInt64> = []
  /// Ordinals under which storage and queue differ.
  private var unsaved: Set<UInt64> = []
  private var next: UInt64 = 1

  enum OnAdd: Equatable {
    case appended
    /// It has the place and ordinal of this draft.
    case replaced(Draft)
  }

  var isEmpty: Bool { drafts.isEmpty }

  var isSaved: Bool { unsaved.isEmpty }

  /// Whether storage has drafts, or a commit that was asked for puts some there.
  var hasStored: Bool { !stored.isEmpty }

  // MARK: Adding

  /// The size of all drafts with one more, without those that adding it drops.
  ///
  /// - Complexity: O(1) within the limits.
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

  /// Adds a draft, or replaces an older one. Above `limit` bytes or ``Limits/drafts``, drops drafts
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

  /// The draft whose place a new one takes. Queued last, the new one could be refused because of a
  /// draft between them, and the older write would be lost too.
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

  /// Above the limits, the drafts whose keys are all written again later.
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

  /// Gives each draft a new form under its ordinal; nil drops it.
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

  /// Stamps the drafts at or after a reading again, in the order of their stamps.
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

  mutating func save(in store: StoreIdentifier) -> [Mutation] {
    guard !unsaved.isEmpty else { return [] }
    let written = drafts.filter { unsaved.contains($0.ordinal) }
    let removed = unsaved.intersection(stored).subtracting(written.map(\.ordinal))
    stored = Set(drafts.map(\.ordinal))
    unsaved = []
    return removed.sorted().map { .remove(.store(store, .draft($0))) }
      + written.map { .put(.store(store, .draft($0.ordinal)), $0.encoded()) }
  }

  mutating func removeAll(in store: StoreIdentifier) -> [Mutation] {
    update { _ in nil }
    return save(in: store)
  }

  /// Adds a draft from storage; called in order of ordinals.
  mutating func restore(_ draft: Draft) {
    drafts.append(draft)
    bytes += draft.operations.keptBytes
    for key in draft.keys { latest[key] = draft.ordinal }
    stored.insert(draft.ordinal)
    next = max(next, draft.ordinal + 1)
  }
}

extension Draft {
  var keys: [Key] { operations.map { Key($0.key) } }
}
