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
    let write = LocalWrite(clock: clock.tick(), operations: effective)
    guard let changes = accept(write, author: author) else {
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

  /// Adds a transaction to the drafts, and returns the changed shown values; nil if a value would
  /// not be shown.
  mutating func accept(_ write: LocalWrite, author: DeviceID) -> [ShownChange]? {
    guard let changes = state.applyDraft(write, author: author) else { return nil }
    drafts.add(write)
    dropExcessRemovals()
    return changes
  }

  /// Drops the earliest drafted removals above a limit, of keys that have no published entry. Drops
  /// a quarter more, so that many writes pass before the next search. All other drafts are bounded:
  /// the values by the policy, the removals by the published entries of their keys.
  ///
  /// - Complexity: O(log *n*) for each removal, amortised.
  private mutating func dropExcessRemovals() {
    let limit = min(Limits.removals, Limits.draftRemovalFactor * policy.keys)
    guard drafts.removalsAtMost > limit else { return }
    let removals = drafts.byKey.filter { key, draft in
      draft.operation.value == nil && state.slots[key] == nil
    }.sorted { ($0.value.clock, $0.key) < ($1.value.clock, $1.key) }
    let excess = removals.dropLast(limit - limit / 4)
    for (key, _) in excess {
      drafts[key] = nil
      state.setDraft(nil, of: key)
    }
    drafts.removalsAtMost = removals.count - excess.count
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
      let write = LocalWrite(clock: stamp, operations: operations)
      if let reason = adopt(write, author: author, over: own) {
        refuse(write, because: reason, noting: &outcome)
        lost.formUnion(write.keys)
      } else {
        own.formUnion(write.keys)
      }
    }
    if last != adopted { outcome.mutations.append(.put(.store(identifier, .adopted), last.row)) }
    adopted = last
    view(
      .initialSyncChange, state.changes(since: shown), superseded: lost,
      at: clock.now.wallMilliseconds, noting: &outcome)
    return outcome
  }

  /// Adds an adopted transaction to the drafts, or returns the reason for refusal. For keys in
  /// `adopted`, which this adoption wrote before, the later write wins.
  private mutating func adopt(
    _ write: LocalWrite, author: DeviceID, over adopted: Set<Key>
  ) -> Refusal.Reason? {
    if write.keys.contains(where: { state.slot($0) != nil && !adopted.contains($0) }) {
      return .initialSync
    }
    let fits =
      write.operations.allSatisfy { (try? policy.check($0)) != nil }
      && accept(write, author: author) != nil
    return fits ? nil : .quota
  }

  // MARK: Refusals and other changes

  mutating func refuse(
    _ write: LocalWrite, because reason: Refusal.Reason, noting outcome: inout StoreOutcome
  ) {
    outcome.mutations += refusals.add(
      write, because: reason, limit: policy.capacityWithKeys(factor: Limits.refusalFactor),
      in: identifier)
    outcome.hasProgress = true
  }

  mutating func takeRefusals(through number: UInt64) -> StoreOutcome {
    let mutations = refusals.take(through: number, in: identifier)
    return StoreOutcome(mutations: mutations, hasProgress: !mutations.isEmpty)
  }

  /// Applies the drafts from storage.
  mutating func start(author: DeviceID) -> StoreOutcome {
    var outcome = StoreOutcome()
    _ = reapplyDrafts(author: author, noting: &outcome)
    return outcome
  }

  mutating func change(
    to policy: Policy, author: DeviceID, at milliseconds: UInt64
  ) -> StoreOutcome {
    reportedOverLimit = []
    var outcome = StoreOutcome(mutations: [.put(.store(identifier, .policy), policy.row)])
    refreshShown(author: author, at: milliseconds, noting: &outcome) {
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
    refreshShown(author: author, at: clock.now.wallMilliseconds, noting: &outcome) { _ in }
    return outcome
  }

  private mutating func refreshShown(
    author: DeviceID, at milliseconds: UInt64, noting outcome: inout StoreOutcome,
    after change: (inout Self) -> Void
  ) {
    let shown = state.shown
    change(&self)
    let keys = reapplyDrafts(author: author, noting: &outcome)
    view(
      .quotaViolationChange, state.changes(since: shown),
      superseded: keys.superseded.union(keys.refused), at: milliseconds, noting: &outcome)
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

extension [Operation] {
  /// Only the last operation of each key.
  package var joined: [Operation] {
    var seen = Set<Key>()
    return reversed().filter { seen.insert(Key($0.key)).inserted }.reversed()
  }
}
