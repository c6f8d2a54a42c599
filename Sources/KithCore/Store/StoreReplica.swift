internal import KithCrypto

/// One store of a replica: its state, the change sets behind it, and the local transactions that
/// are on their way out.
struct StoreReplica {
  let identifier: StoreIdentifier
  /// Whether a program on this host has opened it.
  var isOpened = false
  /// The clock of the last local write that was adopted and may still be in the local stores.
  var adopted = HybridTime.zero
  var state: StoreState
  var log = ChangeSetLog()

  /// Local transactions not yet published, by ordinal: oldest first, but for those that took the
  /// place of an older one.
  private(set) var drafts: [Draft] = []
  /// What the drafts take, in bytes.
  private(set) var draftBytes = 0
  /// The latest draft of every key.
  private(set) var draftOfKey: [Key: UInt64] = [:]
  /// Drafts that are not on disk yet, or only as what they cover.
  private var undurable: Set<UInt64> = []
  /// Ordinals under which there is a draft on disk.
  private var stored: Set<UInt64> = []
  /// Drafts that are on disk and not wanted there any more.
  private var forgotten: [UInt64] = []
  private(set) var nextDraft: UInt64 = 1
  /// Tells the transactions of the next publishing apart.
  private var group: UInt32 = 0

  /// Refusals that the program has not taken, oldest first.
  private(set) var refusals: [Refusal] = []
  /// What the refusals take, in bytes.
  private(set) var refusalBytes = 0
  private var nextRefusal: UInt64 = 1

  /// Local transactions whose durability is to be announced with the next flush.
  var waiting: [WriteID] = []
  /// Chains whose coverage peers have not been told.
  var untold: Set<ChainID> = []
  /// Chains of other devices whose coverage rose last, the latest first.
  private var risenLast: [ChainID] = []
  /// Change sets in storage whose entries cannot be opened: they stay there, and count as lost.
  var unreadable: Set<ChangeSetReference> = []
  /// How much was damaged and dropped, until all of it is covered again.
  var loss: StoreLoss?
  /// Entries of other devices set aside for ever since the start.
  var quarantined = 0

  private var cachedDigest: Digest256?

  var policy: Policy { state.policy }

  /// Whether a part of what was stored is missing: no device has given it back yet, and nobody has
  /// accepted the loss.
  var isLacking: Bool { log.hasLost && loss?.isAccepted != true || !unreadable.isEmpty }

  /// How much is missing.
  var missing: StoreLoss? {
    guard isLacking else { return nil }
    let known = log.hasLost && loss?.isAccepted != true ? loss : nil
    return StoreLoss(
      changeSets: (known?.changeSets ?? 0) + unreadable.count, entries: known?.entries ?? 0)
  }

  /// Everything of the store is covered again, so what is unreadable is superseded. Returns what
  /// storage has to do.
  mutating func endLoss() -> [Mutation] {
    defer { (loss, unreadable) = (nil, []) }
    return (loss == nil ? [] : [.setLoss(identifier, nil)])
      + unreadable.sorted().map { .removeChangeSet(identifier, $0) }
  }

  /// A person accepts that what is missing is gone. Returns what storage has to do.
  mutating func acceptLoss() -> [Mutation] {
    guard isLacking else { return [] }
    loss = StoreLoss(
      changeSets: loss?.changeSets ?? 0, entries: loss?.entries ?? 0, isAccepted: true)
    defer { unreadable = [] }
    return [.setLoss(identifier, loss)]
      + unreadable.sorted().map { .removeChangeSet(identifier, $0) }
  }

  init(identifier: StoreIdentifier, policy: Policy) {
    self.identifier = identifier
    state = StoreState(policy: policy)
  }

  /// Whether a flush has anything to do here.
  var needsFlush: Bool {
    !undurable.isEmpty || !forgotten.isEmpty || !waiting.isEmpty || !untold.isEmpty
  }

  /// The digest over all kept entries but removals that are the newest of their key
  /// (`Docs/Protocol.md`,
  /// "State digest"): of each, by key, newest first, the key's length as 32-bit big-endian, the key
  /// and
  /// the digest of the entry's plaintext.
  ///
  /// - Complexity: O(*n* log *n*) in the keys, when something changed since the last call.
  mutating func digest() -> Digest256 {
    if let cachedDigest { return cachedDigest }
    var hasher = Blake2b.Hasher()
    for (key, slot) in state.slots.sorted(by: { $0.key < $1.key })
    where !slot.newest.entry.isRemoval {
      let text = Array(key.text.utf8)
      let length = withUnsafeBytes(of: UInt32(text.count).bigEndian, Array.init)
      for kept in slot.kept {
        hasher.update(length)
        hasher.update(text)
        hasher.update(kept.digest)
      }
    }
    let digest = hasher.digest256()
    cachedDigest = digest
    return digest
  }

  /// What peers are told of this store.
  mutating func have(only chains: Set<ChainID>? = nil) -> StoreHave {
    var vector = log.vector
    if let chains { vector = vector.filter { chains.contains($0.key) } }
    return StoreHave(
      store: identifier, vector: vector, digest: chains == nil ? digest() : nil, policy: policy,
      isBeyond: chains == nil && log.holdsUncovered)
  }

  /// Notes which chains' coverage peers are told of now.
  mutating func noteRisen() {
    let chains = untold.sorted()
    risenLast = Array(
      (chains + risenLast.filter { !untold.contains($0) }).prefix(Limits.statementEntries))
    untold = []
  }

  /// What a device's statement names of the vector: what rose last, and others while there is room.
  func risen(_ device: DeviceID) -> [ChainID: UInt64] {
    let vector = log.vector
    let rest = vector.keys.filter { $0.device != device && !risenLast.contains($0) }.sorted()
    let named = (risenLast.filter { $0.device != device } + rest).prefix(Limits.statementEntries)
    return Dictionary(
      uniqueKeysWithValues: named.compactMap { chain in
        vector[chain].map { (chain, $0) }
      })
  }

  // MARK: Local transactions

  /// Joins operations on one key, and leaves out removals of keys that hold nothing.
  func effective(_ operations: [Operation]) -> [Operation] {
    operations.joined.filter { operation in
      if operation.value != nil { return true }
      guard let slot = state.slot(Key(operation.key)) else { return false }
      return !slot.newest.entry.isRemoval
    }
  }

  /// Takes in a local transaction as a draft if it stands. Returns the keys whose shown value
  /// changed, or nil where a value would not be shown.
  mutating func accept(
    _ operations: [Operation], clock: HybridTime, author: DeviceID
  ) -> [(key: Key, value: EncodedValue?)]? {
    var draft = Draft(ordinal: nextDraft, clock: clock, operations: operations)
    guard let changes = state.lay(draft, author: author, group: group) else { return nil }
    group += 1
    forgetDrafts(for: draft)
    if let index = indexOfDraft(coveredBy: draft) {
      draft.ordinal = drafts[index].ordinal
      draftBytes -= drafts[index].operations.keptBytes
      drafts[index] = draft
    } else {
      nextDraft += 1
      drafts.append(draft)
    }
    draftBytes += draft.operations.keptBytes
    undurable.insert(draft.ordinal)
    for key in draft.keys { draftOfKey[key] = draft.ordinal }
    return changes
  }

  /// Forgets what a new draft makes unnecessary, but for the draft whose place it takes.
  private mutating func forgetDrafts(for draft: Draft) {
    var ordinals = draftsToForget(for: draft)
    if let index = indexOfDraft(coveredBy: draft) { ordinals.remove(drafts[index].ordinal) }
    guard !ordinals.isEmpty else { return }
    drafts.removeAll { older in
      guard ordinals.contains(older.ordinal) else { return false }
      draftBytes -= older.operations.keptBytes
      undurable.remove(older.ordinal)
      if stored.remove(older.ordinal) != nil { forgotten.append(older.ordinal) }
      return true
    }
  }

  /// What storage has to do so that the drafts survive a crash.
  mutating func makeDraftsDurable() -> [Mutation] {
    let written =
      Canary.loseADraft.isPlanted ? [] : drafts.filter { undurable.contains($0.ordinal) }
    let mutations =
      forgotten.map { Mutation.removeDraft(identifier, $0) }
      + written.map { Mutation.putDraft(identifier, $0.ordinal, $0.encoded()) }
    stored.formUnion(undurable)
    undurable = []
    forgotten = []
    return mutations
  }

  /// Forgets the drafts, which were published. What they would publish is in ``state`` already.
  mutating func forgetPublishedDrafts() -> [Mutation] {
    let mutations = (forgotten + stored.sorted()).map { Mutation.removeDraft(identifier, $0) }
    stored = []
    drafts = []
    draftBytes = 0
    draftOfKey = [:]
    undurable = []
    forgotten = []
    group = 0
    return mutations
  }

  // MARK: Drafts on a new state

  /// What became of the drafts when the published state changed below them.
  struct Recheck {
    var mutations: [Mutation] = []
    var refusals: [Refusal] = []
    /// Keys whose local writes lost to later ones.
    var superseded: Set<Key> = []
    /// Keys of refused transactions.
    var refused: Set<Key> = []
  }

  /// Lays the drafts anew, in order, each on the result of those before (`Docs/Protocol.md`,
  /// "Writing and publishing"): what is older than the newest entry it meets is superseded; a transaction whose
  /// values would not all be shown is refused; an adopted one that loses a key loses whole.
  mutating func recheckDrafts(author: DeviceID) -> Recheck {
    var result = Recheck()
    guard !drafts.isEmpty else { return result }
    state.removeDrafts()
    let before = drafts
    drafts = []
    draftBytes = 0
    draftOfKey = [:]
    group = 0
    for var draft in before {
      let lost = draft.operations.filter { operation in
        guard let slot = state.slots[Key(operation.key)] else { return false }
        return Stamp(clock: draft.clock, device: author) < slot.newest.entry.stamp
      }
      if draft.clock.isAdopted, !lost.isEmpty {
        result.superseded.formUnion(draft.keys)
        refuse(draft, because: .initialSync, noting: &result)
        continue
      }
      if !lost.isEmpty {
        let keys = Set(lost.map { Key($0.key) })
        result.superseded.formUnion(keys)
        draft.operations.removeAll { keys.contains(Key($0.key)) }
        if draft.operations.isEmpty {
          forget(draft, noting: &result)
          continue
        }
        if !undurable.contains(draft.ordinal) {
          result.mutations.append(.putDraft(identifier, draft.ordinal, draft.encoded()))
        }
      }
      guard state.lay(draft, author: author, group: group) != nil else {
        result.refused.formUnion(draft.keys)
        refuse(draft, because: .quota, noting: &result)
        continue
      }
      group += 1
      drafts.append(draft)
      draftBytes += draft.operations.keptBytes
      for key in draft.keys { draftOfKey[key] = draft.ordinal }
    }
    return result
  }

  /// Stamps the drafts again that are not earlier than a reading, in the order of their stamps. They
  /// are laid anew by ``recheckDrafts(author:)``.
  mutating func restampDrafts(from first: HybridTime, by tick: () -> HybridTime) {
    let late = drafts.indices.filter { drafts[$0].clock >= first }
    for index in late.sorted(by: { drafts[$0].clock < drafts[$1].clock }) {
      drafts[index].clock = tick()
      undurable.insert(drafts[index].ordinal)
    }
  }

  mutating func refuse(
    _ draft: Draft, because reason: Refusal.Reason, noting result: inout Recheck
  ) {
    if Canary.loseARefusal.isPlanted { return forget(draft, noting: &result) }
    let refusal = Refusal(
      number: nextRefusal, reason: reason, clock: draft.clock, operations: draft.operations)
    nextRefusal += 1
    refusals.append(refusal)
    refusalBytes += refusal.operations.keptBytes
    result.refusals.append(refusal)
    result.mutations.append(.putRefusal(identifier, refusal.number, refusal.encoded()))
    forget(draft, noting: &result)
  }

  private mutating func forget(_ draft: Draft, noting result: inout Recheck) {
    undurable.remove(draft.ordinal)
    if stored.remove(draft.ordinal) != nil {
      result.mutations.append(.removeDraft(identifier, draft.ordinal))
    }
  }

  /// Forgets the refusals that the program has taken.
  mutating func takeRefusals(through number: UInt64) -> [Mutation] {
    let taken = refusals.filter { $0.number <= number }
    refusals.removeAll { $0.number <= number }
    refusalBytes = refusals.reduce(0) { $0 + $1.operations.keptBytes }
    return taken.map { .removeRefusal(identifier, $0.number) }
  }

  /// Puts back a draft or a refusal from storage.
  mutating func restore(_ draft: Draft) {
    drafts.append(draft)
    stored.insert(draft.ordinal)
    draftBytes += draft.operations.keptBytes
    nextDraft = max(nextDraft, draft.ordinal + 1)
  }

  mutating func restore(_ refusal: Refusal) {
    refusals.append(refusal)
    refusalBytes += refusal.operations.keptBytes
    nextRefusal = max(nextRefusal, refusal.number + 1)
  }

  // MARK: Entries

  /// Merges a published entry and returns the homes that are not wanted any more.
  mutating func merge(_ entry: KeptEntry) -> (isNew: Bool, dropped: [EntryHome]) {
    cachedDigest = nil
    switch state.merge(entry) {
    case .known:
      // Somebody has carried over what a revoked device wrote: that is its home from here on.
      if let home = entry.home,
        let old = state.slots[entry.entry.key]?.kept.first(where: { $0.digest == entry.digest })?
          .home, log.isWithheld(old.changeSet.device)
      {
        return (false, state.rehome(entry.entry.key, entry.digest, to: home).map { [$0] } ?? [])
      }
      return (false, entry.home.map { [$0] } ?? [])
    case .superseded: return (false, entry.home.map { [$0] } ?? [])
    case .kept(let dropped): return (true, dropped.compactMap(\.home))
    }
  }

  /// Forgets removed entries beyond the limit: first those that every other device covers, then the
  /// oldest (`Docs/Protocol.md`, "Sessions").
  mutating func pruneRemovals(coveredByAll: (EntryHome) -> Bool) -> [EntryHome] {
    let excess = state.removals.count - Limits.removals
    guard excess > 0 else { return [] }
    let removals = state.removals.compactMap { state.slots[$0]?.newest }
      .map { (entry: $0, isCovered: $0.home.map(coveredByAll) ?? false) }
      .sorted { left, right in
        left.isCovered != right.isCovered
          ? left.isCovered
          : (left.entry.entry.stamp, left.entry.entry.key)
            < (right.entry.entry.stamp, right.entry.entry.key)
      }
    return removals.prefix(excess).compactMap { removal in
      state.forgetRemoval(of: removal.entry.entry.key)
      return removal.entry.home
    }
  }
}
