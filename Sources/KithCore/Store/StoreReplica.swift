internal import KithCrypto

/// One store of a replica.
struct StoreReplica {
  let identifier: StoreIdentifier
  /// Whether a program on this host has opened it.
  var isUsedHere = false
  /// The clock of the last adopted write, while the local stores may hold it.
  var adopted = HybridTime.zero
  var state: StoreState
  var log = ChangeSetLog()

  var drafts = Drafts()
  var refusals = RefusalList()
  /// Nil: none is kept.
  var history: PastValues?
  /// Writes to report as durable with the next flush.
  var waiting: [WriteID] = []
  /// Chains whose new coverage was not sent to peers yet.
  var unsentChains: Set<ChainID> = []
  /// Change sets in storage that cannot be opened; they count as lost.
  var unreadable: [ChangeSetReference: [UInt32]] = [:]
  /// The damage, until all of it is covered again.
  var loss: StoreLoss?
  /// Entries quarantined since the start.
  var quarantined = 0
  /// Authors over their limit that were reported.
  var reportedOverLimit: Set<DeviceID> = []
  var horizon = Horizon()
  /// Whether it was not sent to peers yet that this store is no longer below its horizon.
  var isHorizonUnsent = false
  /// Counts the changes of vector and digest.
  private(set) var revision: UInt64 = 0

  /// The store's tag under the epoch of the last judged change set.
  var lastTag: (epoch: EpochID, tag: Digest128)?

  private var cachedDigest: Digest256?
  /// About how many bytes are hashed at once.
  private static let hashedBytes = 1 << 12

  var policy: Policy { state.policy }

  init(identifier: StoreIdentifier, policy: Policy, keepsHistory: Bool = true) {
    self.identifier = identifier
    history = keepsHistory ? PastValues() : nil
    state = StoreState(policy: policy)
  }

  var needsFlush: Bool {
    !drafts.isSaved || !waiting.isEmpty || !unsentChains.isEmpty || isHorizonUnsent
  }

  /// The digest over all kept entries, except removals that are their key's newest
  /// (`Docs/Protocol.md`, "State digest").
  ///
  /// - Complexity: O(*n* log *n*) in the keys after a change.
  mutating func digest() -> Digest256 {
    if let cachedDigest { return cachedDigest }
    var hasher = Blake2b.Hasher()
    var bytes: [UInt8] = []
    bytes.reserveCapacity(2 * Self.hashedBytes)
    func add(_ kept: KeptEntry, of key: Key) {
      withUnsafeBytes(of: UInt32(key.size).bigEndian) { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: key.text.utf8)
      withUnsafeBytes(of: kept.digest) { bytes.append(contentsOf: $0) }
    }
    for key in state.slots.keys.sorted() {
      guard let slot = state.slots[key], !slot.newest.entry.isRemoval else { continue }
      add(slot.newest, of: key)
      if let runnerUp = slot.runnerUp { add(runnerUp, of: key) }
      guard bytes.count >= Self.hashedBytes else { continue }
      hasher.update(bytes)
      bytes.removeAll(keepingCapacity: true)
    }
    hasher.update(bytes)
    let digest = hasher.digest256()
    cachedDigest = digest
    return digest
  }

  mutating func have() -> StoreHave {
    var have = StoreHave(
      store: identifier, vector: log.vector, digest: digest(), policy: policy,
      isBeyond: log.holdsUncovered)
    (have.horizon, have.isBelow) = (horizon.clock, horizon.isBelow)
    return have
  }

  // MARK: Entries

  /// Merges a published entry. Returns the locations to drop.
  mutating func merge(_ entry: KeptEntry) -> (isNew: Bool, dropped: [EntryLocation]) {
    cachedDigest = nil
    revision += 1
    switch state.merge(entry) {
    case .known:
      // Another device carried over a revoked device's entry: the entry's location is now in that
      // device's change set.
      if let location = entry.location,
        let old = state.slots[entry.entry.key]?.kept.first(where: { $0.digest == entry.digest })?
          .location, log.isWithheld(old.changeSet.device)
      {
        return (
          false, state.relocate(entry.entry.key, entry.digest, to: location).map { [$0] } ?? []
        )
      }
      return (false, entry.location.map { [$0] } ?? [])
    case .superseded: return (false, entry.location.map { [$0] } ?? [])
    case .kept(let dropped): return (true, dropped.compactMap(\.location))
    }
  }

  /// Covers a chain up to a sequence, limited by received headers. Returns the covered sequence if it
  /// rose.
  mutating func cover(_ chain: ChainID, through sequence: UInt64) -> UInt64? {
    revision += 1
    return log.cover(chain, through: sequence)
  }

  // MARK: Notifying programs

  /// Notifies programs of changes, and keeps the values that these end. Programs are notified of
  /// every change here, except that a failed commit undoes what its history never kept.
  mutating func view(
    _ reason: ChangeReason?, _ changes: [ShownChange], superseded: Set<Key> = [],
    at milliseconds: UInt64, noting outcome: inout StoreOutcome
  ) {
    guard !changes.isEmpty || !superseded.isEmpty else { return }
    if isUsedHere { keepPast(of: changes, because: reason, at: milliseconds) }
    outcome.views.append(
      ViewChange(
        store: identifier, reason: reason, changes: changes.map { ($0.key, $0.value) },
        superseded: superseded.sorted()))
  }

  /// Keeps the values that changes replaced. If a key was missing before, that is kept only if this
  /// device sets it, or if the key has a history: otherwise a first sync would fill the history.
  private mutating func keepPast(
    of changes: [ShownChange], because reason: ChangeReason?, at milliseconds: UInt64
  ) {
    guard var kept = history.take() else { return }
    let transaction = kept.next
    for change in changes where change.old != nil || reason == nil || kept.contains(change.key) {
      let writer = state.slot(change.key)?.newest.entry.stamp.device
      kept.add(
        change.old, of: change.key, endedBy: reason == .quotaViolationChange ? nil : writer,
        at: milliseconds, limit: policy.capacityWithKeys(factor: Limits.historyFactor),
        transaction: transaction)
    }
    history = kept
  }
}

/// The results of a change of a store, for ``Replica/carryOut(_:in:)``.
struct StoreOutcome {
  /// For storage, in one commit with the clock.
  var mutations: [Mutation] = []
  /// For the store's programs.
  var views: [ViewChange] = []
  /// For an operator.
  var reports: [Report] = []
  /// Whether to evaluate statuses and waits again: refusals changed, or damage is gone.
  var hasProgress = false

  static func += (left: inout Self, right: Self) {
    left.mutations += right.mutations
    left.views += right.views
    left.reports += right.reports
    left.hasProgress = left.hasProgress || right.hasProgress
  }
}
