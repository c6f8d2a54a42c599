internal import KithCrypto

extension Replica {
  /// Collects the parts of a batch, and applies it when the last is there.
  mutating func receive(_ part: BatchPart, size: Int, on id: SessionID) {
    guard exchanges(id), var session = sessions[id], let device = session.device else { return }
    guard session.early == nil else { return queue(part, size: size, on: id) }
    let isWanted = stores[part.store] != nil && !session.mismatched.contains(part.store)
    var batch = session.partial ?? Batch(store: part.store, answers: part.answers)
    session.partialBytes += size
    guard batch.store == part.store, session.partialBytes <= Limits.batchBytes else {
      effects.append(.close(id, .protocolViolation))
      disconnect(id)
      return
    }
    batch.isEverything = part.isEverything
    batch.covers += part.covers
    if isWanted {
      for checked in part.changeSets {
        collect(checked, into: &batch, of: &session, id, in: part.store)
      }
    } else {
      // What follows may be wanted, but counts for nothing without this part.
      session.partialTaint.isTotal = true
    }
    if part.hasMore {
      session.partial = batch
      sessions[id] = session
      return
    }
    let taint = session.partialTaint
    session.partial = nil
    session.partialBytes = 0
    session.partialWeights = AuthorWeights()
    session.partialTaint = Taint()
    sessions[id] = session
    if taint.rejected > 0 {
      counters.rejected += taint.rejected
      effects.append(.report(.rejected(peer: device, count: taint.rejected)))
    }
    if isWanted { applyIfInTime(batch, taint: taint, from: id, device) }
  }

  private mutating func collect(
    _ checked: CheckedChangeSet, into batch: inout Batch, of session: inout Session,
    _ id: SessionID, in store: StoreIdentifier
  ) {
    switch checked {
    case .sound(let changeSet):
      if isWorthKeeping(changeSet, of: &session, id, in: store) {
        batch.changeSets.append(changeSet)
      }
    case .unsound(let chain):
      session.partialTaint.rejected += 1
      session.partialTaint.chains.insert(chain)
    case .unknownFormat(let chain):
      session.partialTaint.chains.insert(chain)
      session.partialTaint.isUnjudged = true
    }
  }

  /// Whether a change set waits for the rest of its batch: a batch takes no more memory than the node
  /// keeps of its authors, and all batches under way together no more than of all authors.
  private func isWorthKeeping(
    _ changeSet: ChangeSet, of session: inout Session, _ id: SessionID,
    in identifier: StoreIdentifier
  ) -> Bool {
    let author = changeSet.reference.device
    guard author != keys.id, let store = stores[identifier] else { return true }
    guard !roster.isRevoked(author) else { return false }
    guard roster.isMember(author) else {
      session.partialTaint.chains.insert(changeSet.header.chain)
      session.partialTaint.isUnjudged = true
      return Canary.countWhatCannotBeJudged.isPlanted
    }
    let weight = session.partialWeights[author] + changeSet.weight
    let underWay = sessions.reduce(session.partialWeights.total + changeSet.weight) {
      let early = $1.value.early?.weight ?? 0
      return $1.key == id ? $0 : $0 + $1.value.partialWeights.total + early
    }
    let room = min(
      store.policy.room(factor: Limits.authorFactor),
      store.isOpened ? Limits.authorBytes : Limits.unopenedAuthorBytes)
    guard weight <= room && underWay <= Limits.authorsBytes || Canary.takeEverything.isPlanted
    else {
      session.partialTaint.chains.insert(changeSet.header.chain)
      session.partialTaint.overLimit.insert(author)
      return false
    }
    session.partialWeights.add(changeSet.weight, of: author)
    return true
  }

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
      take(changeSet, into: &store, mending: batch.isEverything, noting: &intake)
    }
    for (author, count) in intake.misdirected.sorted(by: { $0.key < $1.key }) {
      effects.append(
        .report(.misdirected(store: batch.store, peer: peer, author: author, count: count)))
    }
    reportOverLimit(intake.overLimit, in: store)
    if batch.answers > 0 {
      if sessions[id]?.unjudgedPieces.remove(batch.store) != nil { intake.taint.isUnjudged = true }
    } else if intake.taint.isUnjudged, sessions[id]?.awaits(batch.store) == true {
      sessions[id]?.unjudgedPieces.insert(batch.store)
    }
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
      for other in sessions.keys where exchanges(other) {
        know(of: batch.store, on: other, isWhole: false)
      }
    }
    if batch.answers > 0 {
      sessions[id]?.pulled.insert(batch.store)
      if intake.taint.isUnjudged {
        sessions[id]?.unjudged.insert(batch.store)
      } else {
        sessions[id]?.unjudged.remove(batch.store)
      }
    }
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
