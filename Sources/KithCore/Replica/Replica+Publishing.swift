internal import KithCrypto

/// Publishes drafts: makes the batches for peers, and the commits that they need.
extension Replica {
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
    return !hasNoIncarnations
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
}
