internal import KithCrypto

extension Replica {
  mutating func receive(_ part: BatchPart, size: Int, on id: SessionID) {
    guard exchanges(id), let device = links[id]?.device else { return }
    let room = stores[part.store].map { roomForBatch(in: $0, on: id) }
    switch links[id]?.receive(part, size: size, keeping: room) {
    case .more, .unwanted, nil: break
    case .violation: end(id, .protocolViolation)
    case .whole(let batch, let taint):
      if taint.rejected > 0 {
        report(.rejected(peer: device, count: taint.rejected))
      }
      applyIfInTime(batch, taint: taint, from: id, device)
    }
  }

  /// How much of an unfinished batch is kept.
  func roomForBatch(in store: StoreReplica, on id: SessionID?) -> BatchRoom {
    BatchRoom(
      own: keys.id, roster: roster,
      authorBytes: AuthorBudget.most(in: store),
      elsewhereBytes: links.reduce(0) { $0 + $1.value.bytesHeld }
        - (id.flatMap { links[$0]?.assembly.weights.total } ?? 0))
  }

  // MARK: Batches that are early

  /// A batch slightly ahead of the time waits; one far ahead ends the session (`Docs/Protocol.md`,
  /// "Clocks").
  private mutating func applyIfInTime(
    _ batch: Batch, taint: Taint, from id: SessionID, _ peer: DeviceID
  ) {
    if let latest = batch.changeSets.lazy.map(\.header.clock).max() {
      switch timeKeeper.judge(latest, isInviters: links[id]?.isInviter == true) {
      case .apply: hear(generation: latest.generation)
      case .wait(let until):
        links[id]?.delay(EarlyBatch(batch: batch, taint: taint, retryAt: until))
        return
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

  /// Applies the batches whose time has come. If others were missed meanwhile, ends the session;
  /// the next begins with the data kept here.
  mutating func applyEarly(on id: SessionID) {
    let time = now.monotonicMilliseconds
    while let early = links[id]?.nextEarly(at: time),
      let device = links[id]?.device
    {
      applyIfInTime(early.batch, taint: early.taint, from: id, device)
    }
    if links[id]?.hasMissed == true { end(id, .clocksDiffer) }
  }
}
