internal import KithCrypto

/// What a key shows, and by which step.
struct Shown: Hashable {
  var step: ShownStep
  var value: EncodedValue
}

/// A store's entries with the drafts laid over them, and what follows from both: what is shown.
///
/// Whoever changes slots or drafts calls ``refresh(_:)`` with the keys touched before anyone looks
/// at what is shown.
struct StoreState {
  let policy: Policy
  /// What is published, by key.
  private(set) var slots: [Key: Slot] = [:]
  /// What the drafts would publish, by key: only the last entry of each.
  private(set) var drafted: [Key: KeptEntry] = [:]
  /// How many drafts were laid since there was none: it tells the transactions of the next publishing
  /// apart.
  var group: UInt32 = 0
  /// What is shown, by key.
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

  /// Whether everything fits, so that nothing is hidden (`Docs/Protocol.md`, "What is shown", rule
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

  /// Gives a kept entry another sealed form; its former home, if it is kept at all. Nothing that is
  /// shown changes.
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

  /// Works out anew what is shown after the touched keys changed, and returns the keys whose shown
  /// value is another, in order.
  ///
  /// - Complexity: O(*t* log *t*) in the touched keys where everything fits, before and after;
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

  /// The claim under which a step is shown, and what its entry would fall back to. What fell back
  /// already has nothing left to fall back to.
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
