internal import KithCrypto

/// One store of a replica: its state, the change sets that the state came from, and the local
/// transactions that wait to be published.
struct StoreReplica {
  let identifier: StoreIdentifier
  /// Whether a program on this host has opened it.
  var isOpened = false
  /// The clock of the last local write that was adopted and may still be in the local stores.
  var adopted = HybridTime.zero
  var state: StoreState
  var log = ChangeSetLog()

  /// Local transactions that wait to be published.
  var drafts = DraftQueue()
  /// Refusals that the program has not taken.
  var refusals = RefusalList()
  /// Local transactions whose durability is to be announced with the next flush.
  var waiting: [WriteID] = []
  /// Chains whose coverage peers have not been told.
  var untold: Set<ChainID> = []
  /// Change sets in storage whose entries cannot be opened: they stay there, and count as lost.
  var unreadable: Set<ChangeSetReference> = []
  /// How much was damaged and dropped, until all of it is covered again.
  var loss: StoreLoss?
  /// Entries of other devices set aside for ever since the start.
  var quarantined = 0
  /// Authors of whom more came than is kept, and who were reported.
  var reportedOverLimit: Set<DeviceID> = []

  private var cachedDigest: Digest256?

  var policy: Policy { state.policy }

  init(identifier: StoreIdentifier, policy: Policy) {
    self.identifier = identifier
    state = StoreState(policy: policy)
  }

  /// Whether a flush has anything to do here.
  var needsFlush: Bool {
    !drafts.isSaved || !waiting.isEmpty || !untold.isEmpty
  }

  /// The digest over all kept entries, except removals that are the newest of their key
  /// (`Docs/Protocol.md`, "State digest"). It covers, of each entry, by key, newest first: the
  /// key's length as 32-bit big-endian, the key and the digest of the entry's plaintext.
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

  /// The part of a `Have` that asks peers about this store.
  mutating func have() -> StoreHave {
    StoreHave(
      store: identifier, vector: log.vector, digest: digest(), policy: policy,
      isBeyond: log.holdsUncovered)
  }

  // MARK: Entries

  /// Merges a published entry and returns the homes that are not wanted any more.
  mutating func merge(_ entry: KeptEntry) -> (isNew: Bool, dropped: [EntryHome]) {
    cachedDigest = nil
    switch state.merge(entry) {
    case .known:
      // Another device carried over an entry of a revoked device: this copy is the entry's home
      // from here on.
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

  /// Whether there are more removed entries than are kept.
  var hasExcessRemovals: Bool { state.removals.count > Limits.removals }

  /// Forgets removed entries beyond the limit: first those that every other device covers, then the
  /// oldest (`Docs/Protocol.md`, "Sessions"). Returns the mutations for storage.
  mutating func pruneRemovals(coveredByAll: (EntryHome) -> Bool) -> [Mutation] {
    log.drop(forgetRemovals(coveredByAll: coveredByAll), in: identifier)
  }

  /// Forgets these, and returns the homes of their sealed forms.
  mutating func forgetRemovals(coveredByAll: (EntryHome) -> Bool) -> [EntryHome] {
    guard hasExcessRemovals else { return [] }
    let removals = state.removals.compactMap { state.slots[$0]?.newest }
      .map { (entry: $0, isCovered: $0.home.map(coveredByAll) ?? false) }
      .sorted { left, right in
        left.isCovered != right.isCovered
          ? left.isCovered
          : (left.entry.entry.stamp, left.entry.entry.key)
            < (right.entry.entry.stamp, right.entry.entry.key)
      }
    return removals.prefix(removals.count - Limits.removals).compactMap { removal in
      state.forgetRemoval(of: removal.entry.entry.key)
      return removal.entry.home
    }
  }
}
