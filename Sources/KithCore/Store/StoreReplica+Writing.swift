/// Local transactions: of programs, and adopted ones.
extension StoreReplica {
  /// Accepts a transaction as a draft, shown at once, if every value would be shown
  /// (`Docs/Protocol.md`, "Writing and publishing"). The program is notified only of changes in
  /// other keys.
  mutating func write(
    _ operations: [Operation], author: DeviceID, clock: inout TimeKeeper
  ) throws(WriteError) -> [ViewChange] {
    for operation in operations { try policy.check(operation) }
    let effective = effective(operations)
    guard !effective.isEmpty else { return [] }
    if let full = lackOfSpace(for: effective) { throw full }
    guard let changes = accept(effective, clock: clock.tick(), author: author) else {
      throw .quotaExceeded(numbers(of: effective))
    }
    let own = Set(effective.map { Key($0.key) })
    let time = clock.now.wallMilliseconds
    var outcome = StoreOutcome()
    view(nil, changes.filter { own.contains($0.key) }, at: time, noting: &outcome)
    view(
      .quotaViolationChange, changes.filter { !own.contains($0.key) }, at: time, noting: &outcome)
    return outcome.views
  }

  /// Keeps each key's last operation, without removals of empty keys.
  private func effective(_ operations: [Operation]) -> [Operation] {
    operations.joined.filter { operation in
      operation.value != nil || state.slot(Key(operation.key))?.newest.entry.isRemoval == false
    }
  }

  /// The error if drafts or refusals, which grow with each write, are over their limit. Removals
  /// alone are always accepted.
  private func lackOfSpace(for operations: [Operation]) -> WriteError? {
    guard operations.contains(where: { $0.value != nil }) else { return nil }
    guard refusals.bytes <= draftLimit else {
      return .refusalsNotTaken(bytes: refusals.bytes, limit: draftLimit)
    }
    let bytes = drafts.bytes(adding: operations, limit: draftLimit)
    return bytes <= draftLimit ? nil : .tooManyDrafts(bytes: bytes, limit: draftLimit)
  }

  private var draftLimit: Int { policy.room(factor: Limits.draftFactor) }

  /// Adds a draft and returns the changed shown values; nil if a value would not be shown.
  mutating func accept(
    _ operations: [Operation], clock: HybridTime, author: DeviceID
  ) -> [ShownChange]? {
    let draft = Draft(ordinal: 0, clock: clock, operations: operations)
    guard let changes = state.lay(draft, author: author) else { return nil }
    drafts.add(operations, clock: clock, limit: draftLimit)
    return changes
  }

  private func numbers(of operations: [Operation]) -> QuotaNumbers {
    var numbers = QuotaNumbers(
      askedBytes: state.shownBytes, limitBytes: policy.totalBytes,
      askedKeys: state.shown.count, limitKeys: policy.keys)
    for operation in operations {
      let shown = state.shown[Key(operation.key)]
      numbers.askedBytes += (operation.value?.size ?? 0) - (shown?.value.size ?? 0)
      numbers.askedKeys += (operation.value == nil ? 0 : 1) - (shown == nil ? 0 : 1)
    }
    return numbers
  }

  // MARK: Adopting

  /// Adopts transactions that were written while nobody was signed in (`Docs/Protocol/drafts.md`,
  /// "Adoption"). One that does not fit, or writes a key that the account has, is refused whole;
  /// others become drafts. Unless `isAlone`, any other device's write wins over them.
  ///
  /// One commit holds all results and the last clock, so after a crash nothing is adopted or
  /// refused twice.
  mutating func adopt(
    _ writes: [LocalWrite], author: DeviceID, isAlone: Bool, clock: inout TimeKeeper
  ) -> StoreOutcome {
    let shown = state.shown
    let last = writes.isEmpty ? .zero : max(adopted, writes.map(\.clock).max() ?? .zero)
    var outcome = StoreOutcome()
    var own = Set<Key>()
    var lost = Set<Key>()
    for write in writes where write.clock > adopted {
      let operations = effective(write.operations)
      guard !operations.isEmpty else { continue }
      let stamp = isAlone ? clock.tick() : write.clock.adopted
      if let reason = adopt(operations, clock: stamp, author: author, over: own) {
        let draft = Draft(ordinal: 0, clock: stamp, operations: operations)
        refuse(draft, because: reason, noting: &outcome)
        lost.formUnion(draft.keys)
      } else {
        own.formUnion(operations.map { Key($0.key) })
      }
    }
    if last != adopted { outcome.mutations.append(.put(.store(identifier, .adopted), last.row)) }
    adopted = last
    view(
      .initialSyncChange, state.changes(since: shown), superseded: lost,
      at: clock.now.wallMilliseconds, noting: &outcome)
    return outcome
  }

  /// Adds an adopted transaction's draft, or returns the reason for refusal. For keys in `adopted`,
  /// which this adoption wrote before, the later write wins.
  private mutating func adopt(
    _ operations: [Operation], clock: HybridTime, author: DeviceID, over adopted: Set<Key>
  ) -> Refusal.Reason? {
    let isKnown = operations.contains { operation in
      let key = Key(operation.key)
      return state.slot(key) != nil && !adopted.contains(key)
    }
    if isKnown { return .initialSync }
    let fits = operations.allSatisfy { (try? policy.check($0)) != nil }
    guard fits, lackOfSpace(for: operations) == nil,
      accept(operations, clock: clock, author: author) != nil
    else { return .quota }
    return nil
  }

  // MARK: Drafts on a new state

  /// The keys that drafts lost when the published entries changed.
  struct Relaying {
    /// Lost to later writes.
    var superseded: Set<Key> = []
    /// In refused transactions.
    var refused: Set<Key> = []
  }

  /// Lays each draft anew on the result of those before.
  mutating func layDraftsAnew(
    author: DeviceID, noting outcome: inout StoreOutcome
  ) -> Relaying {
    var keys = Relaying()
    guard !drafts.isEmpty else { return keys }
    state.removeDrafts()
    var rests: [UInt64: Draft] = [:]
    for draft in drafts.drafts {
      switch state.layAnew(draft, author: author) {
      case .stands(let rest):
        keys.superseded.formUnion(Set(draft.keys).subtracting(rest.keys))
        rests[draft.ordinal] = rest
      case .superseded: keys.superseded.formUnion(draft.keys)
      case .refused(let rest, let reason):
        let refused = reason == .quota ? rest.keys : []
        keys.superseded.formUnion(Set(draft.keys).subtracting(refused))
        keys.refused.formUnion(refused)
        refuse(rest, because: reason, noting: &outcome)
      }
    }
    drafts.update { rests[$0.ordinal] }
    return keys
  }

  private mutating func refuse(
    _ draft: Draft, because reason: Refusal.Reason, noting outcome: inout StoreOutcome
  ) {
    let refusal = refusals.add(draft, because: reason)
    outcome.mutations.append(
      .put(.store(identifier, .refusal(refusal.number)), refusal.encoded()))
    outcome.hasProgress = true
  }

  mutating func takeRefusals(through number: UInt64) -> StoreOutcome {
    let mutations = refusals.take(through: number, in: identifier)
    return StoreOutcome(mutations: mutations, hasProgress: !mutations.isEmpty)
  }

  /// Lays the drafts from storage.
  mutating func start(author: DeviceID) -> StoreOutcome {
    var outcome = StoreOutcome()
    _ = layDraftsAnew(author: author, noting: &outcome)
    return outcome
  }

  mutating func change(
    to policy: Policy, author: DeviceID, at milliseconds: UInt64
  ) -> StoreOutcome {
    reportedOverLimit = []
    var outcome = StoreOutcome(mutations: [.put(.store(identifier, .policy), policy.row)])
    showAnew(author: author, at: milliseconds, noting: &outcome) {
      $0.state = $0.state.under(policy)
    }
    return outcome
  }

  /// Stamps drafts at or after a reading again: the clock was set back.
  mutating func restampDrafts(
    from first: HybridTime, author: DeviceID, clock: inout TimeKeeper
  ) -> StoreOutcome {
    var outcome = StoreOutcome()
    drafts.restamp(from: first, with: &clock)
    showAnew(author: author, at: clock.now.wallMilliseconds, noting: &outcome) { _ in }
    return outcome
  }

  private mutating func showAnew(
    author: DeviceID, at milliseconds: UInt64, noting outcome: inout StoreOutcome,
    after change: (inout Self) -> Void
  ) {
    let shown = state.shown
    change(&self)
    let keys = layDraftsAnew(author: author, noting: &outcome)
    view(
      .quotaViolationChange, state.changes(since: shown),
      superseded: keys.superseded.union(keys.refused), at: milliseconds, noting: &outcome)
  }

  // MARK: Telling changes

  /// Tells programs of changes, and keeps the values that these end. Programs learn of every change
  /// here, except that a failed commit undoes what its history never kept.
  mutating func view(
    _ reason: ChangeReason?, _ changes: [ShownChange], superseded: Set<Key> = [],
    at milliseconds: UInt64, noting outcome: inout StoreOutcome
  ) {
    guard !changes.isEmpty || !superseded.isEmpty else { return }
    if isOpened { keepPast(of: changes, because: reason, at: milliseconds) }
    outcome.views.append(
      ViewChange(
        store: identifier, reason: reason, changes: changes.map { ($0.key, $0.value) },
        superseded: superseded.sorted()))
  }

  /// That a key was missing is kept only if this device sets it, or if the key has a history:
  /// otherwise a first sync would fill the history.
  private mutating func keepPast(
    of changes: [ShownChange], because reason: ChangeReason?, at milliseconds: UInt64
  ) {
    guard var kept = history.take() else { return }
    let transaction = kept.next
    for change in changes where change.old != nil || reason == nil || kept.contains(change.key) {
      let writer = state.slot(change.key)?.newest.entry.stamp.device
      kept.add(
        change.old, of: change.key, endedBy: reason == .quotaViolationChange ? nil : writer,
        at: milliseconds, limit: policy.room(factor: Limits.historyFactor),
        transaction: transaction)
    }
    history = kept
  }
}

extension Policy {
  /// Throws if an operation can never be shown.
  package func check(_ operation: Operation) throws(WriteError) {
    let bytes = operation.key.utf8.count
    guard bytes > 0, bytes <= keyBytes || operation.value == nil else {
      throw .invalidKey(key: operation.key, bytes: bytes, limit: keyBytes)
    }
    guard let size = operation.value?.size, size > valueBytes else { return }
    throw .valueTooLarge(key: operation.key, bytes: size, limit: valueBytes)
  }
}
