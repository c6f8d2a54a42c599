internal import KithCrypto

struct Shown: Hashable {
  var step: ShownStep
  var value: EncodedValue
}

/// A key that shows another value; nil: none.
struct ShownChange: Hashable {
  var key: Key
  var old: EncodedValue?
  var value: EncodedValue?
}

/// A store's entries, the drafts over them, and the resulting shown values.
///
/// After changes, call ``refresh(_:)`` with the touched keys before reading shown values.
struct StoreState {
  let policy: Policy
  /// The published entries.
  private(set) var slots: [Key: Slot] = [:]
  /// The entries that the drafts would publish now.
  private(set) var drafted: [Key: KeptEntry] = [:]
  /// The next transaction's group. Groups tell the transactions of the next publishing apart.
  var group: UInt32 = 0
  private(set) var shown: [Key: Shown] = [:]
  /// Keys whose newest published entry is a removal.
  private(set) var removals: Set<Key> = []

  private(set) var shownBytes = 0
  /// Bytes of the newest values, shown or not.
  private(set) var newestBytes = 0
  /// Newest values, shown or not.
  private(set) var newestKeys = 0
  /// Newest values that the policy never shows.
  private var neverShown = 0
  /// Whether all values fitted at the last refresh.
  private var fitted = true

  init(policy: Policy) {
    self.policy = policy
  }

  /// Whether nothing is hidden (`Docs/Protocol.md`, "Shown values", rule 1).
  private var fits: Bool {
    neverShown == 0 && newestBytes <= policy.totalBytes && newestKeys <= policy.keys
  }

  /// The key's slot under its draft. The draft's author knew all published entries, so there is no
  /// runner-up.
  func slot(_ key: Key) -> Slot? {
    drafted[key].map(Slot.init) ?? slots[key]
  }

  /// Keys whose newest value is not shown, in order.
  var hiddenKeys: [Key] {
    guard !fitted else { return [] }
    return allKeys.filter { key in
      slot(key)?.newest.entry.value != nil && shown[key]?.step != .value
    }.sorted()
  }

  private var allKeys: Set<Key> { Set(slots.keys).union(drafted.keys) }

  // MARK: Changing

  mutating func merge(_ entry: KeptEntry) -> Slot.Outcome {
    let key = entry.entry.key
    let (old, new, outcome) = Self.merge(entry, into: &slots[key])
    if drafted[key] == nil {
      count(old, by: -1)
      count(new, by: 1)
    }
    if new.entry.isRemoval {
      removals.insert(key)
    } else if old?.entry.isRemoval == true {
      removals.remove(key)
    }
    return outcome
  }

  /// Also returns the slot's newest entries before and after, so that one look-up suffices.
  private static func merge(
    _ entry: KeptEntry, into slot: inout Slot?
  ) -> (old: KeptEntry?, new: KeptEntry, outcome: Slot.Outcome) {
    guard var merged = slot else {
      slot = Slot(entry)
      return (nil, entry, .kept(dropped: []))
    }
    let old = merged.newest
    let outcome = merged.merge(entry)
    slot = merged
    return (old, merged.newest, outcome)
  }

  /// Gives a kept entry another location, and returns the former one; nil if the entry is not kept.
  mutating func relocate(_ key: Key, _ digest: Digest256, to location: EntryLocation)
    -> EntryLocation?
  {
    slots[key]?.relocate(digest, to: location)
  }

  mutating func forgetRemoval(of key: Key) {
    guard removals.remove(key) != nil else { return }
    slots[key] = nil
  }

  /// Sets or removes a key's draft entry.
  mutating func setDraft(_ entry: KeptEntry?, of key: Key) {
    let published = slots[key]?.newest
    count(drafted[key] ?? published, by: -1)
    drafted[key] = entry
    if drafted.isEmpty { group = 0 }
    count(entry ?? published, by: 1)
  }

  private mutating func count(_ newest: KeptEntry?, by sign: Int) {
    guard let entry = newest?.entry, let size = entry.value?.size else { return }
    newestBytes += sign * size
    newestKeys += sign
    if !policy.permits(keyBytes: entry.key.size, valueBytes: size) { neverShown += sign }
  }

  /// Updates the shown values of the touched keys, and returns the changed ones, by key.
  ///
  /// - Complexity: O(*t* log *t*) in the touched keys if everything fits before and after;
  ///   otherwise that of ``Admission``.
  mutating func refresh(_ touched: some Sequence<Key>) -> [ShownChange] {
    defer { fitted = fits }
    guard fitted, fits else { return admitAll() }
    var changes: [ShownChange] = []
    for key in Set(touched) {
      let value = slot(key)?.newest.entry.value
      show(value.map { Shown(step: .value, value: $0) }, under: key, noting: &changes)
    }
    changes.sort { $0.key < $1.key }
    return changes
  }

  /// Shows the values of a new state without drafts: ``refresh(_:)`` without its changes.
  ///
  /// - Complexity: O(*n*) in the keys if everything fits; otherwise that of ``Admission``.
  mutating func showAll() {
    defer { fitted = fits }
    guard fits else {
      _ = admitAll()
      return
    }
    shown.reserveCapacity(newestKeys)
    for (key, slot) in slots {
      guard let value = slot.newest.entry.value else { continue }
      shown[key] = Shown(step: .value, value: value)
    }
    shownBytes = newestBytes
  }

  private mutating func admitAll() -> [ShownChange] {
    var keys: [Key] = []
    var offers: [AdmissionOffer] = []
    var changes: [ShownChange] = []
    for key in allKeys.union(shown.keys) {
      guard let offer = slot(key)?.offer else {
        show(nil, under: key, noting: &changes)
        continue
      }
      keys.append(key)
      offers.append(offer)
    }
    let steps = Admission.shown(of: offers, under: policy)
    for (key, step) in zip(keys, steps) {
      let value = step.flatMap { step in slot(key)?.value(of: step) }
      show(
        step.flatMap { step in value.map { Shown(step: step, value: $0) } }, under: key,
        noting: &changes)
    }
    changes.sort { $0.key < $1.key }
    return changes
  }

  private mutating func show(
    _ new: Shown?, under key: Key, noting changes: inout [ShownChange]
  ) {
    let old = shown[key]
    guard old != new else { return }
    shownBytes += (new?.value.size ?? 0) - (old?.value.size ?? 0)
    shown[key] = new
    if old?.value != new?.value {
      changes.append(ShownChange(key: key, old: old?.value, value: new?.value))
    }
  }
}

extension Slot {
  func value(of step: ShownStep) -> EncodedValue? {
    switch step {
    case .value: newest.entry.value
    case .fallback: newest.entry.fallback?.value
    case .runnerUp: runnerUp?.entry.value
    case .runnerUpFallback: runnerUp?.entry.fallback?.value
    }
  }

  /// A step's claim, and its entry's fallback. A fallback has none of its own.
  func claimAndFallback(of step: ShownStep) -> (claim: Claim, fallback: Fallback?)? {
    switch step {
    case .value: (newest.entry.claim, newest.entry.fallback)
    case .fallback: newest.entry.fallback.map { ($0.claim, nil) }
    case .runnerUp: runnerUp.map { ($0.entry.claim, $0.entry.fallback) }
    case .runnerUpFallback: runnerUp?.entry.fallback.map { ($0.claim, nil) }
    }
  }
}

extension StoreState {
  /// The changed shown values, by key.
  ///
  /// - Complexity: O(*n* log *n*) in the keys.
  func changes(since old: [Key: Shown]) -> [ShownChange] {
    var changes: [ShownChange] = []
    for (key, shown) in shown where old[key]?.value != shown.value {
      changes.append(ShownChange(key: key, old: old[key]?.value, value: shown.value))
    }
    for (key, old) in old where shown[key] == nil {
      changes.append(ShownChange(key: key, old: old.value, value: nil))
    }
    return changes.sorted { $0.key < $1.key }
  }

  /// Returns a state of the same entries under another policy, without drafts: the caller applies
  /// the drafts again.
  func under(_ policy: Policy) -> StoreState {
    var state = StoreState(policy: policy)
    for slot in slots.values {
      for kept in slot.kept { _ = state.merge(kept) }
    }
    state.showAll()
    return state
  }
}
