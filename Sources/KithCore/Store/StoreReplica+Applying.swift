internal import KithCrypto

/// The way by which a batch came.
enum BatchOrigin {
  /// A session, on which these pieces of the same answer came before.
  case session(after: StoreExchange.Unfinished?)
  /// No session's answer: a carrier, whose objects may be old, or this device itself.
  case other
}

/// The result of applying a batch.
struct AppliedBatch {
  /// The part of it that other peers get.
  enum Relay {
    case nothing
    case batch(Batch)
    /// The whole answer, once its last piece is covered.
    case pieces
  }

  var outcome = StoreOutcome()
  var taint: Taint
  /// The latest publishing clock of new change sets.
  var latest = HybridTime.zero
  /// Whether another database publishes under this device's chain.
  var showsCopy = false
  /// Whether it brought news, or an earlier piece of its answer did.
  var isNews = false
  var relay = Relay.nothing
  /// The newest value of each key that a forgotten removal had removed, to be removed again.
  fileprivate(set) var forgotten: [Key: KeptEntry] = [:]

  /// Change sets to relay: new ones, and those covered only now, of which this device may have
  /// lacked entries.
  fileprivate var passedOn: [ChangeSet] = []
  /// The covers by which the vector rose.
  fileprivate var covered: [Cover] = []
  /// Keys with a new entry.
  fileprivate var touched: Set<Key> = []
  fileprivate var again: [ChangeSet] = []
  /// Numbers of change sets for another store, by author.
  fileprivate var misdirected: [DeviceID: Int] = [:]
}

extension StoreReplica {
  /// Applies a batch and counts it in the vector, in one step (`Docs/Protocol.md`, "Batch").
  mutating func apply(
    _ batch: Batch, tainted taint: Taint, from peer: DeviceID, _ origin: BatchOrigin,
    by judge: Judge, _ keyring: inout Keyring, at milliseconds: UInt64
  ) -> AppliedBatch {
    let shown = drafts.isEmpty ? nil : state.shown
    let before = horizon
    horizon.clock = max(horizon.clock, batch.horizon)
    var applied = AppliedBatch(taint: taint)
    var earlier: StoreExchange.Unfinished?
    if case .session(let unfinished) = origin {
      earlier = unfinished
      // A peer that does not know a revocation yet may lack entries that the revoked device's
      // replaced. Once it has carried those over, it sends all again.
      if batch.covers.contains(where: { judge.roster.isRevoked($0.chain.device) }) {
        applied.taint.addAll()
      }
      if let earlier { applied.taint.follow(earlier.taint) }
    }
    for changeSet in batch.changeSets {
      apply(changeSet, repairing: batch.isEverything, by: judge, &keyring, noting: &applied)
    }
    for (author, count) in applied.misdirected.sorted(by: { $0.key < $1.key }) {
      applied.outcome.reports.append(
        .misdirected(store: identifier, peer: peer, author: author, count: count))
    }
    reportOverLimit(applied.taint.overLimit, noting: &applied.outcome)
    cover(batch, noting: &applied)
    if horizon != before {
      applied.outcome.mutations.append(.put(.store(identifier, .horizon), horizon.row))
    }
    applied.passedOn += applied.again.filter { log.isCovered($0.header) }
    show(since: shown, author: judge.own, at: milliseconds, noting: &applied)
    applied.isNews =
      earlier?.isNews == true || !applied.passedOn.isEmpty || !applied.covered.isEmpty
    applied.relay = relay(batch, isPiece: batch.isUnfinished || earlier != nil, applied)
    return applied
  }

  private func relay(_ batch: Batch, isPiece: Bool, _ applied: AppliedBatch) -> AppliedBatch.Relay {
    // Pieces of a repair are relayed as they come: they need not be covered.
    if isPiece, !batch.isEverything {
      return applied.isNews && !batch.isUnfinished ? .pieces : .nothing
    }
    let relayed = Batch(
      store: identifier, isEverything: batch.isEverything,
      changeSets: applied.passedOn.map(\.sealed),
      covers: isPiece || log.holdsWithheld ? [] : applied.covered)
    return relayed.isEmpty ? .nothing : .batch(relayed)
  }

  /// Leaves out change sets that were dropped since, such as those of removals that were forgotten at
  /// once: peers that do not cover them would relay them without end.
  func remaining(of batch: Batch) -> Batch {
    var batch = batch
    batch.changeSets.removeAll { !log.knows($0.reference) && !log.isCovered($0.header) }
    return batch
  }

  /// Judges and merges one change set, independently of the others.
  private mutating func apply(
    _ changeSet: ChangeSet, repairing: Bool, by judge: Judge, _ keyring: inout Keyring,
    noting applied: inout AppliedBatch
  ) {
    let chain = changeSet.header.chain
    let isKnown = log.knows(changeSet.reference)
    let isCovered = log.isCovered(changeSet.header)
    guard !isKnown || !isCovered || repairing || log.hasLost else { return }
    switch self.judge(changeSet, by: judge, &keyring) {
    case .notYet:
      applied.taint.add([chain])
      applied.taint.isUnjudged = true
    case .void: break
    case .misdirected:
      applied.taint.add([chain])
      applied.misdirected[chain.device, default: 0] += 1
    case .tooMuch:
      applied.taint.add([chain])
      applied.taint.overLimit.insert(chain.device)
    case .judged(let opened) where isKnown:
      repair(changeSet, opened, noting: &applied)
      if !isCovered { applied.again.append(changeSet) }
    case .judged(let opened):
      applied.latest = max(applied.latest, changeSet.header.clock)
      watchForCopies(changeSet, ownChain: judge.ownChain, noting: &applied)
      insert(changeSet, opened, noting: &applied)
    }
  }

  /// Reports forks. In this device's own chain, a fork or a later sequence shows a second database
  /// with its keys (`Docs/Protocol.md`, "Copies").
  private func watchForCopies(
    _ changeSet: ChangeSet, ownChain: ChainID?, noting applied: inout AppliedBatch
  ) {
    let header = changeSet.header
    let isFork = log.isFork(changeSet.reference)
    if isFork {
      applied.outcome.reports.append(
        .fork(store: identifier, device: header.chain.device, sequence: header.sequence))
    }
    guard header.chain == ownChain else { return }
    let received = log.chains[header.chain]?.received ?? 0
    if isFork || header.sequence > received { applied.showsCopy = true }
  }

  private mutating func insert(
    _ changeSet: ChangeSet, _ opened: OpenedChangeSet, noting applied: inout AppliedBatch
  ) {
    let reference = changeSet.reference
    if !unreadable.isEmpty, let indices = unreadable.removeValue(forKey: reference) {
      applied.outcome.mutations += reference.keys(indices, in: identifier).map { .remove($0) }
    }
    let previous = log.insert(changeSet)
    var dropped: [EntryLocation] = []
    for (index, entry, digest) in opened.entries {
      let kept = KeptEntry(
        entry: entry, digest: digest, location: EntryLocation(changeSet: reference, index: index))
      if forgets(kept, in: changeSet, isKnown: false, noting: &applied) {
        dropped += kept.location.map { [$0] } ?? []
        continue
      }
      let merged = merge(kept)
      if merged.isNew { applied.touched.insert(entry.key) }
      dropped += merged.dropped
    }
    dropped += quarantine(opened.quarantined, of: changeSet, noting: &applied)
    applied.outcome.mutations += log.drop(
      dropped, alsoConsidering: previous + [reference], in: identifier)
    // If no entry is needed, drop the change set and do not relay it: peers that do not cover it
    // would relay it without end.
    guard let left = log.changeSets[reference] else { return }
    applied.passedOn.append(changeSet)
    applied.outcome.mutations += changeSet.rows(of: left.indices, in: identifier)
  }

  /// Restores lacking entries of a kept change set, if they still count. Causes:
  /// - A peer had dropped them for a revoked device's entries, which it then withheld.
  /// - Equal vectors had different digests.
  /// - Stored data was lost.
  private mutating func repair(
    _ changeSet: ChangeSet, _ opened: OpenedChangeSet, noting applied: inout AppliedBatch
  ) {
    var dropped: [EntryLocation] = []
    for (index, entry, digest) in opened.entries {
      let location = EntryLocation(changeSet: changeSet.reference, index: index)
      guard log.changeSets[changeSet.reference]?.holds(index) == false,
        let box = changeSet.stored.entries[index]
      else { continue }
      let kept = KeptEntry(entry: entry, digest: digest, location: location)
      guard !forgets(kept, in: changeSet, isKnown: true, noting: &applied) else { continue }
      let merged = merge(kept)
      guard !merged.dropped.contains(location) else { continue }
      log.restore(boxOf: box.count, to: location)
      applied.outcome.mutations.append(
        .put(.store(identifier, .entry(changeSet.reference, index)), box))
      if merged.isNew { applied.touched.insert(entry.key) }
      dropped += merged.dropped
    }
    applied.outcome.mutations += log.drop(dropped, in: identifier)
  }

  /// Leaves out a value that a forgotten removal had removed, and notes it; or that removal.
  private func forgets(
    _ kept: KeptEntry, in changeSet: ChangeSet, isKnown: Bool, noting applied: inout AppliedBatch
  ) -> Bool {
    guard isForgotten(kept, in: changeSet, isKnown: isKnown) else { return false }
    if kept.entry.isRemoval { return true }
    if let other = applied.forgotten[kept.entry.key], !KeptEntry.isOlder(other, than: kept) {
      return true
    }
    applied.forgotten[kept.entry.key] = kept
    return true
  }

  private mutating func quarantine(
    _ indices: [UInt32], of changeSet: ChangeSet, noting applied: inout AppliedBatch
  ) -> [EntryLocation] {
    guard !indices.isEmpty else { return [] }
    quarantined += indices.count
    applied.outcome.reports.append(
      .quarantined(
        store: identifier, author: changeSet.header.chain.device, count: indices.count))
    return indices.flatMap { index in
      log.quarantine(EntryLocation(changeSet: changeSet.reference, index: index))
    }
  }

  /// Reports authors over their limit; again only after half of their space was free, since the
  /// excess comes with every answer.
  private mutating func reportOverLimit(
    _ authors: Set<DeviceID>, noting outcome: inout StoreOutcome
  ) {
    let half = policy.capacity(factor: Limits.authorFactor) / 2
    reportedOverLimit = reportedOverLimit.filter { log.weights[$0] > half || authors.contains($0) }
    for author in authors.sorted() where reportedOverLimit.insert(author).inserted {
      outcome.reports.append(.authorOverLimit(store: identifier, author: author))
    }
  }

  /// Counts covers up to received signed headers, if the chain is not tainted and this device
  /// covers `from`.
  private mutating func cover(_ batch: Batch, noting applied: inout AppliedBatch) {
    let wasLacking = log.hasLost
    // A store with nothing has no value that was removed.
    let wasNew = log.vector.isEmpty && !wasLacking
    for cover in batch.covers where !applied.taint.contains(cover.chain) {
      let from = log.chains[cover.chain]?.covered ?? 0
      let isLate = log.isPublished(cover.chain, after: from, since: batch.horizon)
      guard cover.from <= from, let covered = self.cover(cover.chain, through: cover.through)
      else { continue }
      if wasNew ? batch.isFromBelow : !isLate { horizon.isBelow = true }
      unsentChains.insert(cover.chain)
      let raised = Cover(chain: cover.chain, from: from, through: covered)
      applied.covered.append(raised)
      applied.outcome.mutations.append(raised.mutation(in: identifier))
      applied.outcome.mutations += log.regain(cover.chain, through: covered, in: identifier)
    }
    if wasLacking, !log.hasLost {
      applied.outcome.mutations += endLoss()
      applied.outcome.reports.append(.regained(store: identifier))
      applied.outcome.hasProgress = true
    }
  }

  /// Notes the changes that programs see, also those from applying the drafts again.
  private mutating func show(
    since shown: [Key: Shown]?, author: DeviceID, at milliseconds: UInt64,
    noting applied: inout AppliedBatch
  ) {
    var changes = state.refresh(applied.touched)
    let drafted = reapplyDrafts(author: author, noting: &applied.outcome)
    if let shown { changes = state.changes(since: shown) }
    let written = applied.touched.union(drafted.superseded).subtracting(drafted.refused)
    view(
      .externalChange, changes.filter { written.contains($0.key) }, superseded: drafted.superseded,
      at: milliseconds, noting: &applied.outcome)
    view(
      .quotaViolationChange, changes.filter { !written.contains($0.key) },
      superseded: drafted.refused, at: milliseconds, noting: &applied.outcome)
  }

  // MARK: Drafts on a new state

  /// The keys that drafts lost when the published entries changed.
  struct LostDrafts {
    /// Lost to later writes.
    var superseded: Set<Key> = []
    /// In refused transactions.
    var refused: Set<Key> = []
  }

  /// Drops the drafts that would not be the newest entry of their key, and refuses transactions of
  /// which a value would not be shown (`Docs/Protocol/drafts.md`, "Re-checking").
  mutating func reapplyDrafts(
    author: DeviceID, noting outcome: inout StoreOutcome
  ) -> LostDrafts {
    var keys = LostDrafts()
    guard !drafts.isEmpty else { return keys }
    var remaining: [LocalWrite] = []
    for write in drafts.transactions {
      var rest = write
      rest.operations.removeAll { !state.isNewest($0, writtenAt: write.clock, by: author) }
      if write.clock.isAdopted, rest != write {
        refuse(write, because: .initialSync, noting: &outcome)
        rest.operations = []
      }
      keys.superseded.formUnion(Set(write.keys).subtracting(rest.keys))
      if !rest.operations.isEmpty { remaining.append(rest) }
    }
    var unshown: [LocalWrite] = []
    while true {
      let refused = state.replaceDrafts(with: remaining, author: author)
      guard !refused.isEmpty else { break }
      unshown += refused
      let clocks = Set(refused.map(\.clock))
      remaining.removeAll { clocks.contains($0.clock) }
    }
    // Some may fit over the remaining ones, without others that were not shown.
    for write in unshown.sorted(by: { $0.clock < $1.clock }) {
      if state.applyDraft(write, author: author) != nil {
        remaining.append(write)
      } else {
        refuse(write, because: .quota, noting: &outcome)
        keys.refused.formUnion(write.keys)
      }
    }
    drafts.retain(only: remaining)
    return keys
  }
}
