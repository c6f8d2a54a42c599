/// Local transactions: those of programs, those that were written while nobody was signed in, and
/// the fate of both when the state below them changes.
extension StoreReplica {
  /// Accepts a local transaction as a draft if every value that it writes would be shown
  /// (`Docs/Protocol.md`, "Shown values"). It shows at once.
  ///
  /// The program is notified only of the changes that its writes cause in other keys.
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
    return [
      ViewChange(
        store: identifier, reason: nil, changes: changes.filter { own.contains($0.key) }),
      ViewChange(
        store: identifier, reason: .quotaViolationChange,
        changes: changes.filter { !own.contains($0.key) }),
    ].filter { !$0.changes.isEmpty }
  }

  /// Joins operations on one key, and leaves out removals of keys that hold nothing.
  private func effective(_ operations: [Operation]) -> [Operation] {
    operations.joined.filter { operation in
      operation.value != nil || state.slot(Key(operation.key))?.newest.entry.isRemoval == false
    }
  }

  /// Why a transaction cannot be kept as a draft, or its refusal later; nil if it can. For removals
  /// alone it is nil too: they are always accepted. The limits exist because drafts that wait for a
  /// peer, and refusals that wait for the program, grow with each write.
  private func lackOfSpace(for operations: [Operation]) -> WriteError? {
    guard operations.contains(where: { $0.value != nil }) else { return nil }
    guard refusals.bytes <= draftLimit else {
      return .refusalsNotTaken(bytes: refusals.bytes, limit: draftLimit)
    }
    let bytes = drafts.bytes(adding: operations, limit: draftLimit)
    return bytes <= draftLimit ? nil : .tooManyDrafts(bytes: bytes, limit: draftLimit)
  }

  /// The most bytes of drafts, and of refusals.
  private var draftLimit: Int { policy.room(factor: Limits.draftFactor) }

  /// Takes in a local transaction as a draft if it stands. Returns the keys whose shown value
  /// changed, or nil if a value would not be shown.
  mutating func accept(
    _ operations: [Operation], clock: HybridTime, author: DeviceID
  ) -> [(key: Key, value: EncodedValue?)]? {
    let draft = Draft(ordinal: 0, clock: clock, operations: operations)
    guard let changes = state.lay(draft, author: author) else { return nil }
    drafts.add(operations, clock: clock, limit: draftLimit)
    return changes
  }

  private func numbers(of operations: [Operation]) -> QuotaNumbers {
    var numbers = QuotaNumbers(
      usedBytes: state.shownBytes, askedBytes: state.shownBytes, limitBytes: policy.totalBytes,
      usedKeys: state.shown.count, askedKeys: state.shown.count, limitKeys: policy.keys)
    for operation in operations {
      let shown = state.shown[Key(operation.key)]
      numbers.askedBytes += (operation.value?.size ?? 0) - (shown?.value.size ?? 0)
      numbers.askedKeys += (operation.value == nil ? 0 : 1) - (shown == nil ? 0 : 1)
    }
    return numbers
  }

  // MARK: Adopting

  /// Takes in the transactions that were written while nobody was signed in (`Docs/Protocol.md`,
  /// "First sync"). A transaction is refused whole if the account already has one of its keys, or
  /// if it does not fit; the others become drafts. If the account has other devices, any write of
  /// theirs wins over the drafts, whenever it arrives.
  ///
  /// One commit holds the fate of all writes and the clock of the last. So after a crash before the
  /// local stores are emptied, nothing is adopted or refused twice.
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
    if last != adopted { outcome.mutations.append(.setAdopted(identifier, last)) }
    adopted = last
    view(.initialSyncChange, state.changes(since: shown), superseded: lost, noting: &outcome)
    return outcome
  }

  /// Makes a draft of a transaction that was written while nobody was signed in. If it does not
  /// stand, returns the reason. For keys that such transactions `adopted` before, the later write
  /// wins.
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

  /// The keys of drafts that lost when the published entries changed below them.
  struct Relaying {
    /// Keys whose local writes lost to later ones.
    var superseded: Set<Key> = []
    /// Keys of refused transactions.
    var refused: Set<Key> = []
  }

  /// Lays the drafts anew, in order, each on the result of those before.
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
    outcome.mutations.append(.putRefusal(identifier, refusal.number, refusal.encoded()))
    outcome.hasProgress = true
  }

  /// Forgets the refusals that the program has taken.
  mutating func takeRefusals(through number: UInt64) -> StoreOutcome {
    let taken = refusals.take(through: number)
    return StoreOutcome(
      mutations: taken.map { .removeRefusal(identifier, $0.number) }, hasProgress: !taken.isEmpty)
  }

  /// The node has started: lays the drafts of before.
  mutating func start(author: DeviceID) -> StoreOutcome {
    var outcome = StoreOutcome()
    _ = layDraftsAnew(author: author, noting: &outcome)
    return outcome
  }

  /// Shows the same entries and drafts under another policy.
  mutating func change(to policy: Policy, author: DeviceID) -> StoreOutcome {
    reportedOverLimit = []
    var outcome = StoreOutcome(mutations: [.putStore(identifier, policy)])
    showAnew(author: author, noting: &outcome) { $0.state = $0.state.under(policy) }
    return outcome
  }

  /// The hybrid clock was set back: stamps the drafts again that are not earlier than a reading.
  mutating func restampDrafts(
    from first: HybridTime, author: DeviceID, clock: inout TimeKeeper
  ) -> StoreOutcome {
    var outcome = StoreOutcome()
    drafts.restamp(from: first, with: &clock)
    showAnew(author: author, noting: &outcome) { _ in }
    return outcome
  }

  private mutating func showAnew(
    author: DeviceID, noting outcome: inout StoreOutcome, after change: (inout Self) -> Void
  ) {
    let shown = state.shown
    change(&self)
    let keys = layDraftsAnew(author: author, noting: &outcome)
    view(
      .quotaViolationChange, state.changes(since: shown),
      superseded: keys.superseded.union(keys.refused), noting: &outcome)
  }

  /// Notes a change of the shown values, if there is one.
  func view(
    _ reason: ChangeReason, _ changes: [(key: Key, value: EncodedValue?)], superseded: Set<Key>,
    noting outcome: inout StoreOutcome
  ) {
    guard !changes.isEmpty || !superseded.isEmpty else { return }
    outcome.views.append(
      ViewChange(
        store: identifier, reason: reason, changes: changes, superseded: superseded.sorted()))
  }
}

extension Policy {
  /// Throws if an operation can never be shown.
  fileprivate func check(_ operation: Operation) throws(WriteError) {
    let bytes = operation.key.utf8.count
    guard bytes > 0, bytes <= keyBytes || operation.value == nil else {
      throw .invalidKey(key: operation.key, bytes: bytes, limit: keyBytes)
    }
    guard let size = operation.value?.size, size > valueBytes else { return }
    throw .valueTooLarge(key: operation.key, bytes: size, limit: valueBytes)
  }
}
