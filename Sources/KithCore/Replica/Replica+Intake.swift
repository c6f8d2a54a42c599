internal import KithCrypto

/// What taking in the change sets of one batch adds up to.
struct Intake {
  var taint: Taint
  var mutations: [Mutation] = []
  /// Change sets that were new to us.
  var fresh: [ChangeSet] = []
  /// Change sets that we had already and did not cover: perhaps we had not all of their entries.
  var again: [ChangeSet] = []
  /// Keys with an entry that was new to us.
  var touched: Set<Key> = []
  /// What the vector rose by.
  var covered: [Cover] = []
  var needsNewIncarnation = false
  /// Authors of whom more came than is kept.
  var overLimit: Set<DeviceID> = []
  /// What authors have left for the store at hand of their budgets over all stores.
  private var budgets: [DeviceID: AuthorBudget] = [:]
  /// How many change sets came that their authors had signed for another store.
  var misdirected: [DeviceID: Int] = [:]

  init(taint: Taint) {
    self.taint = taint
    overLimit = taint.overLimit
  }

  /// How much of an author a store takes; `others` are all other stores, which do not change while
  /// the batch is taken in.
  mutating func room(
    of author: DeviceID, in store: StoreReplica, among others: [StoreIdentifier: StoreReplica],
    own: DeviceID
  ) -> Int {
    let budget =
      budgets[author]
      ?? AuthorBudget(of: author, beside: store.identifier, among: others, own: own)
    budgets[author] = budget
    return budget.room(in: store)
  }
}

extension Replica {
  /// Judges one change set and merges its entries; its neighbours do not depend on it.
  mutating func take(
    _ changeSet: ChangeSet, into store: inout StoreReplica, mending: Bool,
    noting intake: inout Intake
  ) {
    let isKnown = store.log.knows(changeSet.reference)
    let isCovered = store.log.isCovered(changeSet.header)
    guard !isKnown || !isCovered || mending || store.log.hasLost else { return }
    let room = intake.room(
      of: changeSet.header.chain.device, in: store, among: stores, own: keys.id)
    switch judge(changeSet, in: store, room: room) {
    case .notYet where Canary.countWhatCannotBeJudged.isPlanted: store.log.insert(changeSet)
    case .notYet:
      intake.taint.chains.insert(changeSet.header.chain)
      intake.taint.isUnjudged = true
    case .void: break
    case .misdirected:
      intake.taint.chains.insert(changeSet.header.chain)
      counters.rejected += 1
      intake.misdirected[changeSet.header.chain.device, default: 0] += 1
    case .tooMuch:
      intake.taint.chains.insert(changeSet.header.chain)
      intake.overLimit.insert(changeSet.header.chain.device)
    case .judged(let judged) where isKnown:
      mend(changeSet, judged, in: &store, noting: &intake)
      if !isCovered { intake.again.append(changeSet) }
    case .judged(let judged):
      timeKeeper.witness(changeSet.header.clock)
      watchForCopies(changeSet, store, noting: &intake)
      keep(changeSet, judged, in: &store, noting: &intake)
    }
  }

  /// A second database with this device's keys shows itself by change sets that we did not make;
  /// a copied one by two of the same sequence (`Docs/Protocol.md`, "Entries and change sets").
  private mutating func watchForCopies(
    _ changeSet: ChangeSet, _ store: StoreReplica, noting intake: inout Intake
  ) {
    let chain = changeSet.header.chain
    let isFork = store.log.isFork(changeSet.reference)
    if isFork {
      counters.forks += 1
      effects.append(
        .report(
          .fork(
            store: store.identifier, device: chain.device, sequence: changeSet.header.sequence)))
    }
    guard chain.device == keys.id, chain.incarnation == incarnation else { return }
    let own = store.log.chains[chain]?.received ?? 0
    if isFork || changeSet.header.sequence > own { intake.needsNewIncarnation = true }
  }

  private mutating func keep(
    _ changeSet: ChangeSet, _ judged: Judged, in store: inout StoreReplica,
    noting intake: inout Intake
  ) {
    let reference = changeSet.reference
    store.unreadable.remove(reference)
    let previous = store.log.insert(changeSet)
    var dropped: [EntryHome] = []
    for (index, entry, digest) in judged.entries {
      let kept = KeptEntry(
        entry: entry, digest: digest, home: EntryHome(changeSet: reference, index: index))
      let merged = store.merge(kept)
      if merged.isNew { intake.touched.insert(entry.key) }
      dropped += merged.dropped
    }
    dropped += quarantine(judged.quarantined, of: changeSet, in: &store)
    // What never reaches the disk need not be removed from it.
    intake.mutations += store.log.drop(
      dropped, alsoConsidering: previous + [reference], in: store.identifier
    ).filter { !$0.concerns(reference) }
    // What nothing is left of is neither kept nor passed on: nobody keeps it, so where its chain is
    // not covered it would be new again wherever it comes, and go round for ever.
    guard let left = store.log.changeSets[reference] else { return }
    intake.fresh.append(changeSet)
    let stored = changeSet.stored
    intake.mutations.append(
      .putHeader(
        store.identifier, reference, header: stored.header, signature: stored.signature))
    for index in left.indices {
      guard let box = stored.entries[index] else { continue }
      intake.mutations.append(.putEntry(store.identifier, reference, index: index, box: box))
    }
  }

  /// Takes entries of a change set that we hold without them, if they still count: a peer that
  /// withholds a revoked device's entries has sent others without those that they replaced, equal
  /// vectors had different digests, or a part of what was stored was lost.
  private func mend(
    _ changeSet: ChangeSet, _ judged: Judged, in store: inout StoreReplica,
    noting intake: inout Intake
  ) {
    var dropped: [EntryHome] = []
    for (index, entry, digest) in judged.entries {
      let home = EntryHome(changeSet: changeSet.reference, index: index)
      guard store.log.changeSets[changeSet.reference]?.holds(index) == false,
        let box = changeSet.stored.entries[index]
      else { continue }
      let merged = store.merge(KeptEntry(entry: entry, digest: digest, home: home))
      guard merged.isNew else { continue }
      store.log.restore(boxOf: box.count, to: home)
      intake.mutations.append(
        .putEntry(store.identifier, changeSet.reference, index: index, box: box))
      intake.touched.insert(entry.key)
      dropped += merged.dropped
    }
    intake.mutations += store.log.drop(dropped, in: store.identifier)
  }

  private mutating func quarantine(
    _ indices: [UInt32], of changeSet: ChangeSet, in store: inout StoreReplica
  ) -> [EntryHome] {
    guard !indices.isEmpty else { return [] }
    counters.quarantined += indices.count
    store.quarantined += indices.count
    effects.append(
      .report(
        .quarantined(
          store: store.identifier, author: changeSet.header.chain.device, count: indices.count)))
    return indices.flatMap { index in
      store.log.quarantine(EntryHome(changeSet: changeSet.reference, index: index))
    }
  }
}

extension Mutation {
  fileprivate func concerns(_ reference: ChangeSetReference) -> Bool {
    switch self {
    case .removeEntry(_, reference, _), .removeChangeSet(_, reference): true
    default: false
    }
  }
}
