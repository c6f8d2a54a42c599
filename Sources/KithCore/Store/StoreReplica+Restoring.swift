internal import KithCrypto

extension StoreReplica {
  /// A store from storage, and the number of its unreadable parts.
  typealias Restored = (store: Self, damaged: Int)

  /// Makes all stores from storage, which has opened all rows. Signatures were checked before
  /// storing. Only one change set's boxes are in memory at a time, for each thread of the repeater.
  static func restored(
    _ outline: StorageOutline, by judge: Judge, _ keyring: Keyring,
    concurrently repeater: InboundMessage.Repeater?,
    _ rows: @escaping @Sendable ([RowKey]) throws(StorageError) -> [[UInt8]?]
  ) throws(StorageError) -> [Restored] {
    let stored = outline.snapshot.stores.sorted { $0.key < $1.key }
    var judge = judge
    judge.repeater = stored.count == 1 ? repeater : nil
    let results = values(stored.count, by: 1, with: repeater) { [judge] number in
      Result { () throws(StorageError) in
        let (identifier, store) = stored[number]
        return try restored(
          identifier, store, outline.changeSets[identifier] ?? [:], by: judge, keyring,
          keepsHistory: outline.snapshot.keepsHistory, rows)
      }
    }
    return try results.map { (result) throws(StorageError) in try result.get() }
  }

  private static func restored(
    _ identifier: StoreIdentifier, _ stored: StoredStore,
    _ changeSets: [ChangeSetReference: [UInt32]], by judge: Judge, _ keyring: Keyring,
    keepsHistory: Bool, _ rows: ([RowKey]) throws(StorageError) -> [[UInt8]?]
  ) throws(StorageError) -> Restored {
    var keyring = keyring
    var store = Self(
      identifier: identifier, policy: stored.policy, keepsHistory: keepsHistory)
    var damaged = 0
    store.isUsedHere = stored.isUsedHere
    store.adopted = stored.adopted
    store.horizon = stored.horizon
    store.log.withhold(judge.roster.membership.revoked.subtracting([judge.own]))
    for (reference, indices) in changeSets.sorted(by: { $0.key < $1.key }) {
      let rows = try rows(reference.keys(indices, in: identifier))
      if let kept = StoredChangeSet(rows, entries: indices),
        let header = try? ChangeSetHeader(decoding: kept.header),
        store.restore(ChangeSet(header: header, stored: kept), by: judge, &keyring)
      {
        continue
      }
      damaged += 1
      store.unreadable[reference] = indices
    }
    for (chain, covered) in stored.vector { store.log.restore(chain, covered: covered) }
    for (chain, covered) in stored.lost { store.log.restore(chain, lost: covered) }
    store.loss = stored.loss
    for (row, bytes) in stored.drafts.sorted(by: { $0.key < $1.key }) {
      let draft = Draft(decoding: bytes)
      store.drafts.restore(draft, from: row)
      if draft == nil { damaged += 1 }
    }
    for (number, bytes) in stored.refusals.sorted(by: { $0.key < $1.key }) {
      if let refusal = Refusal(number: number, decoding: bytes) {
        store.refusals.restore(refusal)
      } else {
        store.refusals.skip(number)
        damaged += 1
      }
    }
    for (number, bytes) in stored.pastValues.sorted(by: { $0.key < $1.key }) {
      if let value = PastValue(number: number, decoding: bytes) {
        store.history?.restore(value)
      } else {
        damaged += 1
      }
    }
    store.state.showAll()
    return (store, damaged)
  }

  private mutating func restore(
    _ changeSet: ChangeSet, by judge: Judge, _ keyring: inout Keyring
  ) -> Bool {
    guard !changeSet.stored.entries.isEmpty else {
      log.insert(changeSet)
      return true
    }
    guard let author = judge.roster.certificate(of: changeSet.header.chain.device),
      let box = keyring.sharedBox(epoch: changeSet.header.epoch, author: author),
      case .judged(let opened) = judge.open(changeSet, box: box, of: author.boxKey)
    else { return false }
    log.insert(changeSet)
    for (index, entry, digest) in opened.entries {
      let location = EntryLocation(changeSet: changeSet.reference, index: index)
      _ = merge(KeptEntry(entry: entry, digest: digest, location: location))
    }
    for index in opened.quarantined {
      quarantined += 1
      _ = log.quarantine(EntryLocation(changeSet: changeSet.reference, index: index))
    }
    return true
  }

  // MARK: Damage

  /// Whether damaged data is missing that no device has returned, and whose loss nobody has
  /// accepted.
  var isLacking: Bool { log.hasLost && loss?.isAccepted != true || !unreadable.isEmpty }

  var missing: StoreLoss? {
    guard isLacking else { return nil }
    let known = log.hasLost && loss?.isAccepted != true ? loss : nil
    return StoreLoss(rows: (known?.rows ?? 0) + unreadable.count)
  }

  /// Ends the loss: all is covered again, so unreadable change sets are superseded.
  mutating func endLoss() -> [Mutation] {
    let mutations: [Mutation] = loss == nil ? [] : [.remove(.store(identifier, .loss))]
    loss = nil
    return mutations + removeUnreadable()
  }

  /// Called when a person accepts the loss.
  mutating func acceptLoss() -> [Mutation] {
    guard isLacking else { return [] }
    let accepted = StoreLoss(rows: loss?.rows ?? 0, isAccepted: true)
    loss = accepted
    return [.put(.store(identifier, .loss), accepted.row)] + removeUnreadable()
  }

  private mutating func removeUnreadable() -> [Mutation] {
    defer { unreadable = [:] }
    return unreadable.sorted { $0.key < $1.key }.flatMap { reference, indices in
      reference.keys(indices, in: identifier).map { .remove($0) }
    }
  }

  /// Handles damage: covers nothing any more, so that peers send everything again. Data that is
  /// kept is ignored then. If `damage` is nil, only change sets cannot be read.
  mutating func drop(_ damage: StoreLoss?) -> [Mutation] {
    guard damage != nil || !unreadable.isEmpty else { return [] }
    let old = log.hasLost && loss?.isAccepted == false ? loss : nil
    let mutations = log.lose(in: identifier)
    guard let damage else { return mutations }
    let loss = StoreLoss(rows: (old?.rows ?? 0) + damage.rows)
    self.loss = loss
    return mutations + [.put(.store(identifier, .loss), loss.row)]
  }
}

extension ChangeSetReference: Comparable {
  package static func < (left: Self, right: Self) -> Bool {
    if left.device != right.device { return left.device < right.device }
    if left.incarnation != right.incarnation { return left.incarnation < right.incarnation }
    if left.sequence != right.sequence { return left.sequence < right.sequence }
    return left.digest < right.digest
  }
}
