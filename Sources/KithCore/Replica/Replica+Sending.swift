internal import KithCrypto

/// Sends answers and pushes. The links decide which batches are sent, and which wait.
extension Replica {
  // MARK: Batches

  mutating func answer(
    _ theirs: StoreHave, number: UInt64, on id: SessionID, _ device: DeviceID
  ) {
    guard let log = stores[theirs.store]?.log else { return }
    let isComparable = theirs.digest != nil && theirs.vector == log.vector
    let digest = isComparable ? stores[theirs.store]?.digest() : nil
    let horizon = max(theirs.horizon, stores[theirs.store]?.horizon.clock ?? .zero)
    switch links[id]?.answer(
      theirs, number: number, from: log, digest: digest, isExpected: horizon > .zero,
      pieceBytes: pieceBytes)
    {
    case .piece(let piece): send(piece, on: id)
    case .everything(let piece, let isNews):
      if isNews {
        report(.divergence(store: theirs.store, peer: device))
      }
      if let piece { send(piece, on: id) }
    case .waits, .nothing, nil: break
    }
  }

  /// Sends new change sets to every peer that exchanges the store and lacks any of them, except to
  /// their source. `isEarly`: they may go before they are synced.
  mutating func push(
    _ batch: Batch, isInPieces: Bool = false, isEarly: Bool = false, except source: SessionID?
  ) {
    // Made for the first session that gets it.
    var made: OutboundBatch?
    var batch = batch
    batch.horizon = stores[batch.store]?.horizon.clock ?? .zero
    let isInPieces = isInPieces || batch.weight > pieceBytes
    for id in links.keys.sorted() where id != source {
      switch links[id]?.push(batch, isInPieces: isInPieces) {
      case .send:
        let outbound = made ?? OutboundBatch(batch, from: stores[batch.store]?.log)
        made = outbound
        effects += outbound.effects(on: id, isEarly: isEarly)
        if links[id]?.flow.sent(outbound.byteCount) == true { effects.append(.awaitDrain(id)) }
      case .queued: catchUp(id)
      case .nothing, nil: break
      }
    }
  }

  private mutating func send(_ piece: Link.Piece, on id: SessionID) {
    var batch = piece.batch
    batch.horizon = stores[batch.store]?.horizon.clock ?? .zero
    effects.append(.sendStored(id, batch))
    if piece.asksForDrain { effects.append(.awaitDrain(id)) }
  }

  // MARK: Back-pressure

  mutating func setWritable(_ isWritable: Bool, _ id: SessionID) {
    links[id]?.flow.set(isWritable: isWritable)
    catchUp(id)
  }

  mutating func handleDrained(on id: SessionID) {
    links[id]?.flow.noteDrained()
    catchUp(id)
  }

  /// Sends the pending batches while the session takes more, each made above the peer's present
  /// coverage.
  mutating func catchUp(_ id: SessionID) {
    while let due = links[id]?.nextDue() {
      switch due {
      case .answer(let theirs, let number):
        guard let peer = links[id]?.device ?? links[id]?.joiner else { return }
        answer(theirs, number: number, on: id, peer)
      case .piece(let answer):
        guard let log = stores[answer.store]?.log else { continue }
        let piece = links[id]?.piece(
          of: answer, from: log, bytes: pieceBytes, evenEmpty: answer.number > 0)
        if let piece { send(piece, on: id) }
      }
    }
    planCoverage()
  }
}
