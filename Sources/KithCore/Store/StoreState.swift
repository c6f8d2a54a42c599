internal import KithCrypto

/// The value that a key shows, and its step.
struct Shown: Hashable {
  var step: ShownStep
  var value: EncodedValue
}

/// A store's entries with the drafts laid over them, and the shown values that result from both.
///
/// After a change of slots or drafts, the caller passes the touched keys to ``refresh(_:)`` before
/// anything reads the shown values.
struct StoreState {
  let policy: Policy
  /// The published entries, by key.
  private(set) var slots: [Key: Slot] = [:]
  /// The entries that the drafts would publish, by key: only the last one of each key.
  private(set) var drafted: [Key: KeptEntry] = [:]
  /// The number of drafts laid since there was none. It tells the transactions of the next
  /// publishing apart.
  var group: UInt32 = 0
  /// The shown values, by key.
  private(set) var shown: [Key: Shown] = [:]
  /// Newest entries that are removals and published.
  private(set) var removals: Set<Key> = []

  /// Bytes shown.
  private(set) var shownBytes = 0
  /// Bytes of the newest values, shown or not.
  private(set) var newestBytes = 0
  /// Newest values, shown or not.
  private(set) var newestKeys = 0
  /// Newest values that the policy never shows.
  private var neverShown = 0
  /// Whether the last refresh found room for everything.
  private var fitted = true

  init(policy: Policy) {
    self.policy = policy
  }

  /// Whether everything fits, so that nothing is hidden (`Docs/Protocol.md`, "Shown values", rule
  /// 1).
  private var fits: Bool {
    neverShown == 0 && newestBytes <= policy.totalBytes && newestKeys <= policy.keys
  }

  /// The slot of a key with its draft laid over. A draft's author knew all that was published, so
  /// the draft has no runner-up.
  func slot(_ key: Key) -> Slot? {
    drafted[key].map(Slot.init) ?? slots[key]
  }

  /// Keys whose newest write is a value that is not shown, in order.
  var hiddenKeys: [Key] {
    guard !fitted else { return [] }
    return allKeys.filter { key in
      slot(key)?.newest.entry.value != nil && shown[key]?.step != .value
    }.sorted()
  }

  private var allKeys: Set<Key> { Set(slots.keys).union(drafted.keys) }

  // MARK: Changing

  /// Merges a published entry. Call ``refresh(_:)`` afterwards.
  mutating func merge(_ entry: KeptEntry) -> Slot.Outcome {
    let key = entry.entry.key
    uncount(key)
    defer { count(key) }
    let outcome: Slot.Outcome
    if slots[key] != nil {
      outcome = slots[key]?.merge(entry) ?? .known
    } else {
      slots[key] = Slot(entry)
      outcome = .kept(dropped: [])
    }
    if slots[key]?.newest.entry.isRemoval == true {
      removals.insert(key)
    } else {
      removals.remove(key)
    }
    return outcome
  }

  /// Gives a kept entry another sealed form. Returns its former home, or nil if the entry is not
  /// kept. The shown values do not change.
  mutating func rehome(_ key: Key, _ digest: Digest256, to home: EntryHome) -> EntryHome? {
    slots[key]?.rehome(digest, to: home)
  }

  /// Forgets a removed key altogether.
  mutating func forgetRemoval(of key: Key) {
    guard removals.remove(key) != nil else { return }
    slots[key] = nil
  }

  /// Lays a draft's entry over a key, or takes it away. Call ``refresh(_:)`` afterwards.
  mutating func setDraft(_ entry: KeptEntry?, of key: Key) {
    uncount(key)
    drafted[key] = entry
    if drafted.isEmpty { group = 0 }
    count(key)
  }

  private mutating func count(_ key: Key) { count(key, by: 1) }
  private mutating func uncount(_ key: Key) { count(key, by: -1) }

  private mutating func count(_ key: Key, by sign: Int) {
    guard let size = (drafted[key] ?? slots[key]?.newest)?.entry.value?.size else { return }
    newestBytes += sign * size
    newestKeys += sign
    if !policy.permits(keyBytes: key.size, valueBytes: size) { neverShown += sign }
  }

  /// Works out the shown values anew after the touched keys changed, and returns the keys whose
  /// shown value changed, in order.
  ///
  /// - Complexity: O(*t* log *t*) in the touched keys if everything fits, before and after;
  ///   otherwise that of ``Admission``.
  mutating func refresh(_ touched: some Sequence<Key>) -> [(key: Key, value: EncodedValue?)] {
    defer { fitted = fits }
    guard fitted, fits else { return admitAll() }
    var changes: [(key: Key, value: EncodedValue?)] = []
    for key in Set(touched) {
      let value = slot(key)?.newest.entry.value
      show(value.map { Shown(step: .value, value: $0) }, under: key, noting: &changes)
    }
    changes.sort { $0.key < $1.key }
    return changes
  }

  private mutating func admitAll() -> [(key: Key, value: EncodedValue?)] {
    var keys: [Key] = []
    var offers: [AdmissionOffer] = []
    var changes: [(key: Key, value: EncodedValue?)] = []
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
    _ new: Shown?, under key: Key, noting changes: inout [(key: Key, value: EncodedValue?)]
  ) {
    let old = shown[key]
    guard old != new else { return }
    shownBytes += (new?.value.size ?? 0) - (old?.value.size ?? 0)
    shown[key] = new
    if old?.value != new?.value { changes.append((key, new?.value)) }
  }
}

extension Slot {
  /// The value that a step shows.
  func value(of step: ShownStep) -> EncodedValue? {
    switch step {
    case .value: newest.entry.value
    case .fallback: newest.entry.fallback?.value
    case .runnerUp: runnerUp?.entry.value
    case .runnerUpFallback: runnerUp?.entry.fallback?.value
    }
  }

  /// The claim under which a step is shown, and the fallback of its entry. A step that is a
  /// fallback has none of its own.
  func standing(of step: ShownStep) -> (claim: Claim, fallback: Fallback?)? {
    switch step {
    case .value: (newest.entry.claim, newest.entry.fallback)
    case .fallback: newest.entry.fallback.map { ($0.claim, nil) }
    case .runnerUp: runnerUp.map { ($0.entry.claim, $0.entry.fallback) }
    case .runnerUpFallback: runnerUp?.entry.fallback.map { ($0.claim, nil) }
    }
  }
}

extension StoreState {
  /// Keys whose shown value is another than it was, in order.
  ///
  /// - Complexity: O(*n* log *n*) in the keys.
  func changes(since old: [Key: Shown]) -> [(key: Key, value: EncodedValue?)] {
    var changes: [(key: Key, value: EncodedValue?)] = []
    for (key, shown) in shown where old[key]?.value != shown.value {
      changes.append((key, shown.value))
    }
    for key in old.keys where shown[key] == nil { changes.append((key, nil)) }
    return changes.sorted { $0.key < $1.key }
  }

  /// The same entries and drafts under another policy. Drafts are to be laid anew.
  func under(_ policy: Policy) -> StoreState {
    var state = StoreState(policy: policy)
    for slot in slots.values {
      for kept in slot.kept { _ = state.merge(kept) }
    }
    _ = state.refresh(slots.keys)
    return state
  }
}
