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

  /// A batch far ahead of the time ends the session (`Docs/Protocol.md`, "Clocks").
  private mutating func applyIfInTime(
    _ batch: Batch, taint: Taint, from id: SessionID, _ peer: DeviceID
  ) {
    if let latest = batch.changeSets.lazy.map(\.header.clock).max() {
      switch timeKeeper.judge(latest, isInviters: links[id]?.isInviter == true) {
      case .apply: hear(generation: latest.generation)
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
}
