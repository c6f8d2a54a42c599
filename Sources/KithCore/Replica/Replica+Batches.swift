internal import KithCrypto

extension Replica {
  mutating func receive(_ part: BatchPart, size: Int, on id: SessionID) {
    guard exchanges(id), let device = links[id]?.device else { return }
    let bounds = stores[part.store].map { batchBounds(in: $0, on: id) }
    switch links[id]?.receive(part, size: size, within: bounds) {
    case .more, .unwanted, nil: break
    case .violation: end(id, .protocolViolation)
    case .whole(let batch, let taint):
      if taint.rejected > 0 {
        report(.rejected(peer: device, count: taint.rejected))
      }
      applyIfInTime(batch, taint: taint, from: id, device)
    }
  }

  /// The limits of an unfinished batch.
  func batchBounds(in store: StoreReplica, on id: SessionID?) -> BatchBounds {
    BatchBounds(
      own: keys.id, roster: roster,
      authorBytes: AuthorBudget.most(in: store),
      elsewhereBytes: links.reduce(0) { $0 + $1.value.bufferedBytes }
        - (id.flatMap { links[$0]?.assembly.weights.total } ?? 0))
  }

  /// A batch far ahead of the time ends the session (`Docs/Protocol.md`, "Clocks").
  private mutating func applyIfInTime(
    _ batch: Batch, taint: Taint, from id: SessionID, _ peer: DeviceID
  ) {
    if let latest = batch.changeSets.lazy.map(\.header.clock).max() {
      switch timeKeeper.judge(latest, isInviters: links[id]?.isInviter == true) {
      case .apply: follow(generation: latest.generation)
      case .tooFarAhead(let milliseconds):
        report(.publishedAhead(peer: peer, milliseconds: milliseconds))
        return end(id, .clocksDiffer)
      case .generationTooLate(let generation):
        report(.generationTooLate(peer: peer, generation))
        return end(id, .clocksDiffer)
      }
    }
    apply(batch, taint: taint, from: id, peer)
  }

  // MARK: Applying

  /// Applies a batch, publishes drafts if possible, and relays the batch. `id` is nil if it came from
  /// a carrier.
  ///
  /// - Returns: The taint, also of what this device could not judge or refused.
  @discardableResult
  mutating func apply(
    _ batch: Batch, taint: Taint, from id: SessionID?, _ peer: DeviceID
  ) -> Taint {
    var judge = judge
    for author in Set(batch.changeSets.lazy.map(\.header.chain.device)) {
      judge.budgets[author] = AuthorBudget(
        of: author, beside: batch.store, among: stores, own: keys.id)
    }
    let origin =
      id.map { .session(after: links[$0]?[batch.store].unfinished) } ?? BatchOrigin.other
    let time = now.wallMilliseconds
    var batch = batch
    // A horizon beyond what was published would be false.
    batch.horizon = min(
      batch.horizon, max(clock.latest, batch.changeSets.lazy.map(\.header.clock).max() ?? .zero))
    if let id { batch.isFromBelow = links[id]?[batch.store].isBelow == true }
    let result = stores[batch.store]?.apply(
      batch, tainted: taint, from: peer, origin, by: judge, &members.keyring, at: time)
    guard var applied = result else { return taint }
    timeKeeper.witness(applied.latest)
    if let id {
      links[id]?[batch.store].noteApplied(batch, applied.taint, isNews: applied.isNews)
      if applied.isNews { noteSessionNews() }
    }
    // Before publishing, because this database does not know all of its chain.
    if applied.showsCopy { handleClone() }
    let removals = removeAgain(applied.forgotten, of: batch.store, noting: &applied.outcome)
    var own: Batch?
    if stores[batch.store]?.drafts.isEmpty == false, canPublish(batch.store) {
      own = publish(batch.store, noting: &applied.outcome)
    }
    applied.outcome.mutations += pruneRemovals(of: batch.store)
    carryOut(applied.outcome, in: [batch.store])
    switch applied.relay {
    case .nothing: break
    case .batch(let relayed):
      let batch = stores[batch.store]?.remaining(of: relayed) ?? relayed
      if !batch.isEmpty { push(batch, isEarly: earlySending.relays, except: id) }
    case .pieces: push(Batch(store: batch.store), isInPieces: true, except: id)
    }
    if let removals { push(removals, except: nil) }
    if let own { push(own, except: nil) }
    if let id {
      notePulled(on: id)
      compareStates(of: batch.store, on: id)
    }
    return applied.taint
  }

  /// Publishes removals of values that forgotten removals had removed. Returns the batch for peers.
  private mutating func removeAgain(
    _ values: [Key: KeptEntry], of identifier: StoreIdentifier, noting outcome: inout StoreOutcome
  ) -> Batch? {
    guard !values.isEmpty, !isJoining, !hasNoIncarnations, roster.isMember(keys.id),
      let sealer = sealer(for: identifier),
      let batch = stores[identifier]?.removals(
        of: values, by: sealer, clock: &timeKeeper, entropy: &entropy)
    else { return nil }
    let (judge, time) = (judge, now.wallMilliseconds)
    let result = stores[identifier]?.apply(
      batch, tainted: Taint(), from: judge.own, .other, by: judge, &members.keyring, at: time)
    guard let applied = result else { return nil }
    outcome += applied.outcome
    return batch
  }

  /// Change sets came from a session: carriers need them too, unless other devices put them first.
  private mutating func noteSessionNews() {
    guard !carriers.isEmpty else { return }
    let (random, moment) = (entropy.drawNumber(), now.monotonicMilliseconds)
    for id in carriers.keys { carriers[id]?.schedule?.noteSessionNews(at: moment, random: random) }
  }
}
