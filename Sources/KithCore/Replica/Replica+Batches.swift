internal import KithCrypto

extension Replica {
  /// Takes a part of a batch, and applies the batch when the last is there.
  mutating func receive(_ part: BatchPart, size: Int, on id: SessionID) {
    guard exchanges(id), let device = links[id]?.device else { return }
    let room = stores[part.store].map { roomForBatch(in: $0, on: id) }
    switch links[id]?.receive(part, size: size, keeping: room) {
    case .more, .unwanted, nil: break
    case .violation: end(id, .protocolViolation)
    case .whole(let batch, let taint):
      if taint.rejected > 0 {
        counters.rejected += taint.rejected
        effects.append(.report(.rejected(peer: device, count: taint.rejected)))
      }
      applyIfInTime(batch, taint: taint, from: id, device)
    }
  }

  /// How much of a batch waits for the rest of it.
  private func roomForBatch(in store: StoreReplica, on id: SessionID) -> BatchRoom {
    BatchRoom(
      own: keys.id, roster: roster,
      authorBytes: min(
        store.policy.room(factor: Limits.authorFactor),
        store.isOpened ? Limits.authorBytes : Limits.unopenedAuthorBytes),
      elsewhereBytes: links.reduce(0) { $0 + $1.value.bytesHeld }
        - (links[id]?.assembly.weights.total ?? 0))
  }

  // MARK: Batches that are early

  /// Applies a batch; or, if its latest publishing clock is a little ahead of the time, has it wait; or,
  /// if that is far ahead, ends the session (`Docs/Protocol.md`, "Clocks"). A joiner judges no clock of
  /// its inviter but by the ration of generations.
  private mutating func applyIfInTime(
    _ batch: Batch, taint: Taint, from id: SessionID, _ peer: DeviceID
  ) {
    let latest = batch.changeSets.lazy.map(\.header.clock).max()
    if let latest, let wait = wait(for: latest, on: id) {
      guard wait <= Limits.earlyMilliseconds else {
        let ahead = Int64(clamping: latest.milliseconds) - Int64(clamping: now.wallMilliseconds)
        effects.append(.report(.publishedAhead(peer: peer, milliseconds: ahead)))
        return end(id, .clocksDiffer)
      }
      let retryAt = now.monotonicMilliseconds + UInt64(wait)
      links[id]?.delay(EarlyBatch(batch: batch, taint: taint, retryAt: retryAt))
      return
    }
    if let latest { hear(generation: latest.generation) }
    apply(batch, taint: taint, from: id, peer)
  }

  /// How long a batch with this latest publishing clock waits; nil: not at all.
  private func wait(for latest: HybridTime, on id: SessionID) -> Int64? {
    guard links[id]?.isInviter == true else { return timeKeeper.wait(for: latest) }
    return timeKeeper.counts(latest) ? nil : .max
  }

  /// Applies the batches of a link whose time has come. If others were missed meanwhile, the session
  /// ends, and the next begins with what is there.
  mutating func applyEarly(on id: SessionID) {
    let time = now.monotonicMilliseconds
    while let early = links[id]?.nextEarly(at: time),
      let device = links[id]?.device
    {
      applyIfInTime(early.batch, taint: early.taint, from: id, device)
    }
    if links[id]?.hasMissed == true { end(id, .clocksDiffer) }
  }

  // MARK: Applying

  /// Applies a batch, counts it in the vector and passes it on, in one step (`Docs/Protocol.md`,
  /// "Sessions").
  mutating func apply(
    _ batch: Batch, taint: Taint, from id: SessionID, _ peer: DeviceID
  ) {
    guard stores[batch.store] != nil else { return }
    // Taken out, so that changing it copies nothing.
    guard var store = stores.removeValue(forKey: batch.store) else { return }
    let chainsBefore = store.log.chains.count
    let hadDrafts = !store.drafts.isEmpty
    let shownBefore = hadDrafts ? store.state.shown : [:]
    var intake = Intake(taint: taint)
    let half = Canary.applyHalfABatch.isPlanted ? batch.changeSets.count / 2 : 0
    for changeSet in batch.changeSets.dropLast(half) {
      take(changeSet, into: &store, repairing: batch.isEverything, noting: &intake)
    }
    for (author, count) in intake.misdirected.sorted(by: { $0.key < $1.key }) {
      effects.append(
        .report(.misdirected(store: batch.store, peer: peer, author: author, count: count)))
    }
    reportOverLimit(intake.overLimit, in: store)
    intake.covered = cover(batch, in: &store, taint: intake.taint)
    intake.fresh += intake.again.filter { store.log.isCovered($0.header) }
    let wasLacking = store.log.hasLost
    for cover in intake.covered {
      intake.mutations.append(
        .setVector(batch.store, cover.chain.device, cover.chain.incarnation, cover.through))
      intake.mutations += store.log.regain(
        cover.chain, through: cover.through, in: batch.store)
    }
    if wasLacking, !store.log.hasLost {
      intake.mutations += store.endLoss()
      effects.append(.report(.regained(store: batch.store)))
      effects.append(.progress)
    }
    var changes = store.state.refresh(intake.touched)
    let recheck = store.recheckDrafts(author: keys.id)
    if hadDrafts { changes = store.state.changes(since: shownBefore) }
    intake.mutations += recheck.mutations
    stores[batch.store] = store
    show(changes, of: batch.store, intake, recheck)
    if stores[batch.store]?.log.chains.count != chainsBefore {
      // What peers have said of a chain before we knew it counts now.
      for other in links.keys where exchanges(other) {
        know(of: batch.store, on: other, isWhole: false)
      }
    }
    links[id]?[batch.store].noteApplied(
      isAnswer: batch.answers > 0, isUnjudged: intake.taint.isUnjudged)
    intake.mutations += pruneRemovals(of: batch.store)
    finish(batch, intake, from: id)
    notePulled(on: id)
  }

  /// Says of which authors more came than is kept. It comes again with every answer of every session,
  /// and is said anew only once half of an author's room was free meanwhile.
  private mutating func reportOverLimit(_ authors: Set<DeviceID>, in store: StoreReplica) {
    let half = store.policy.room(factor: Limits.authorFactor) / 2
    var reported = reportedOverLimit[store.identifier] ?? []
    reported = reported.filter { store.log.weights[$0] > half || authors.contains($0) }
    for author in authors.sorted() where reported.insert(author).inserted {
      effects.append(.report(.authorOverLimit(store: store.identifier, author: author)))
    }
    reportedOverLimit[store.identifier] = reported
  }

  /// Makes what came durable, together with the drafts that can be published now, and passes it on.
  private mutating func finish(_ batch: Batch, _ intake: Intake, from id: SessionID) {
    var mutations = intake.mutations
    var own: Batch?
    if intake.needsNewIncarnation {
      // Before anything is published: what this database knows of its chain is not all of it.
      meetClone()
    }
    if let store = stores[batch.store], !store.drafts.isEmpty, canPublish(batch.store) {
      let published = publish(batch.store)
      mutations += published.mutations
      own = published.batch
    }
    let isWithholding = stores[batch.store]?.log.holdsWithheld == true
    let relayed = Batch(
      store: batch.store, isEverything: batch.isEverything, changeSets: intake.fresh,
      covers: isWithholding ? [] : intake.covered)
    if Canary.sendBeforePersist.isPlanted { push(relayed, except: id) }
    if !mutations.isEmpty { effects.append(.persist(mutations + [.setClock(clock.latest)])) }
    if !relayed.isEmpty { push(relayed, except: id) }
    if let own { push(own, except: nil) }
  }

  /// Believes what the batch covers, where nothing of it was rejected, up to a signed header
  /// received, and only where we cover what it starts from.
  private func cover(_ batch: Batch, in store: inout StoreReplica, taint: Taint) -> [Cover] {
    var raised: [Cover] = []
    for cover in batch.covers where !taint.covers(cover.chain) {
      let from = store.log.chains[cover.chain]?.covered ?? 0
      guard cover.from <= from,
        let covered = store.log.cover(cover.chain, through: cover.through)
      else { continue }
      store.untold.insert(cover.chain)
      raised.append(Cover(chain: cover.chain, from: from, through: covered))
    }
    return raised
  }

  // MARK: What programs see

  mutating func show(
    _ changes: [(key: Key, value: EncodedValue?)], of identifier: StoreIdentifier,
    _ intake: Intake, _ recheck: StoreReplica.Recheck
  ) {
    let written = intake.touched.union(recheck.superseded).subtracting(recheck.refused)
    for (reason, part, superseded) in [
      (
        ChangeReason.serverChange, changes.filter { written.contains($0.key) },
        recheck.superseded.sorted()
      ),
      (
        .quotaViolationChange,
        Canary.forgetAChange.isPlanted
          ? [] : changes.filter { !written.contains($0.key) },
        recheck.refused.sorted()
      ),
    ] where !part.isEmpty || !superseded.isEmpty {
      effects.append(
        .view(
          ViewChange(
            store: identifier, reason: reason, changes: part, superseded: superseded)))
    }
    if !recheck.refusals.isEmpty { effects.append(.refusals(identifier, recheck.refusals)) }
  }
}
