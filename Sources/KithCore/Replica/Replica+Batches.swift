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
        counters.rejected += taint.rejected
        effects.append(.report(.rejected(peer: device, count: taint.rejected)))
      }
      applyIfInTime(batch, taint: taint, from: id, device)
    }
  }

  /// How much of an unfinished batch is kept.
  func roomForBatch(in store: StoreReplica, on id: SessionID?) -> BatchRoom {
    BatchRoom(
      own: keys.id, roster: roster,
      authorBytes: min(
        store.policy.room(factor: Limits.authorFactor),
        store.isOpened ? Limits.authorBytes : Limits.unopenedAuthorBytes),
      elsewhereBytes: links.reduce(0) { $0 + $1.value.bytesHeld }
        - (id.flatMap { links[$0]?.assembly.weights.total } ?? 0))
  }

  // MARK: Batches that are early

  /// A batch slightly ahead of the time waits; one far ahead ends the session (`Docs/Protocol.md`,
  /// "Clocks"). A joiner checks its inviter's clocks only against the ration of generations.
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

  /// In milliseconds; nil: the batch does not wait.
  private func wait(for latest: HybridTime, on id: SessionID) -> Int64? {
    guard links[id]?.isInviter == true else { return timeKeeper.wait(for: latest) }
    return timeKeeper.counts(latest) ? nil : .max
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
