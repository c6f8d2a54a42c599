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
}
