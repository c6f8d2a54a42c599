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
}
