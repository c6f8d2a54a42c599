internal import KithCrypto

/// From drafts to what peers get. The links decide which batches are sent, and which wait.
extension Replica {
  // MARK: Publishing

  /// Publishes drafts if possible, makes the rest durable, and sends the new coverage. `onCarrier`:
  /// all that a carrier brings was taken in, so drafts can be put there.
  mutating func flush(onCarrier: Bool = false) {
    let flushed = stores.keys.sorted().filter {
      needsFlush($0) || onCarrier && stores[$0]?.drafts.isEmpty == false
    }
    var outcome = StoreOutcome()
    var batches: [(batch: Batch, isEarly: Bool)] = []
    for identifier in flushed where canPublish(identifier, onCarrier: onCarrier) {
      let isFresh = stores[identifier]?.drafts.hasStored == false
      guard let batch = publish(identifier, noting: &outcome) else { continue }
      let isEarly = allowsEarly(batch, isFresh: isFresh, noting: &outcome)
      batches.append((batch, isEarly))
    }
    carryOut(outcome, in: flushed)
    for identifier in flushed {
      effects += stores[identifier]?.waiting.map(Effect.durable) ?? []
      stores[identifier]?.waiting = []
    }
    for (batch, isEarly) in batches { push(batch, isEarly: isEarly, except: nil) }
    sendChangedVectors()
  }

  private mutating func allowsEarly(
    _ batch: Batch, isFresh: Bool, noting outcome: inout StoreOutcome
  ) -> Bool {
    let stores = self
    return earlySending.allows(
      batch, isFresh: isFresh, by: incarnations.current, used: { stores.usedIncarnations.count },
      timeKeeper, adding: &outcome.mutations)
  }

  /// Whether this device, and a link or a carrier, allow it (`Docs/Protocol.md`, "Writing and
  /// publishing").
  func canPublish(_ identifier: StoreIdentifier, onCarrier: Bool = false) -> Bool {
    guard stores[identifier] != nil, !isJoining, incarnations.current != nil,
      timeKeeper.mayPublish,
      keyring.current != nil, roster.isMember(keys.id),
      onCarrier || links.values.contains(where: { $0.allowsPublishing(identifier) })
    else { return false }
    return !isBarren
  }

  /// Returns the batch for peers.
  mutating func publish(
    _ identifier: StoreIdentifier, noting outcome: inout StoreOutcome
  ) -> Batch? {
    guard let sealer = sealer(for: identifier),
      let published = stores[identifier]?.publish(
        by: sealer, clock: &timeKeeper, entropy: &entropy)
    else { return nil }
    outcome.mutations += published.mutations + pruneRemovals(of: identifier)
    return published.batch
  }

  /// Nil if this device cannot publish now.
  mutating func sealer(for identifier: StoreIdentifier) -> Sealer? {
    guard timeKeeper.mayPublish, let epoch = keyring.current, let chain = ownChain,
      let certificate = roster.certificate(of: keys.id),
      let box = members.keyring.sharedBox(epoch: epoch.id, author: certificate)
    else { return nil }
    return Sealer(
      box: box, storeTag: epoch.storeTag(of: identifier), epoch: epoch.id, chain: chain,
      account: account, keys: keys)
  }

  mutating func pruneRemovals(of identifier: StoreIdentifier) -> [Mutation] {
    guard stores[identifier]?.hasExcessRemovals(removalLimit) == true else { return [] }
    return stores[identifier]?.pruneRemovals(
      limit: removalLimit, coveredByAll: coverage.coveredByAllOthers(of: identifier),
      lacking: coverage.lacking(of: identifier)) ?? []
  }

  /// Sends peers the vector entries that changed.
  mutating func sendChangedVectors() {
    var changed: [StoreHave] = []
    for identifier in stores.keys.sorted() {
      guard let store = stores[identifier], !store.unsentChains.isEmpty || store.isHorizonUnsent
      else {
        continue
      }
      stores[identifier]?.unsentChains = []
      stores[identifier]?.isHorizonUnsent = false
      vectorChanged(in: identifier)
      var have = StoreHave(
        store: identifier, vector: store.log.vector.filter { store.unsentChains.contains($0.key) },
        digest: nil, policy: store.policy)
      have.isBelow = store.horizon.isBelow
      changed.append(have)
    }
    guard !changed.isEmpty else { return }
    let messages = Have(
      number: 0, isWhole: false, listsAll: false, stores: changed, time: clockReading
    )
    .messages()
    for id in links.keys.sorted() where exchanges(id) {
      for message in messages { effects.append(.send(id, message)) }
    }
  }

  // MARK: Sending

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
