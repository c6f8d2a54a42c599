internal import KithCrypto

extension StoreReplica {
  /// Makes a store from storage, which has compared all checksums. Signatures were checked before
  /// storing. Only one change set's boxes are in memory at a time.
  ///
  /// - Returns: The store, and the number of unreadable parts.
  static func restored(
    _ identifier: StoreIdentifier, _ stored: StoredStore, _ references: [ChangeSetReference],
    by judge: Judge, _ keyring: inout Keyring, keepsHistory: Bool,
    _ changeSet: (ChangeSetReference) throws(StorageError) -> StoredChangeSet?
  ) throws(StorageError) -> (store: Self, damaged: Int) {
    var store = Self(
      identifier: identifier, policy: stored.policy, keepsHistory: keepsHistory)
    var damaged = 0
    store.isOpened = stored.isOpened
    store.adopted = stored.adopted
    store.horizon = stored.horizon
    store.log.withhold(judge.roster.membership.revoked.subtracting([judge.own]))
    for reference in references.sorted() {
      if let kept = try changeSet(reference),
        let header = try? ChangeSetHeader(decoding: kept.header),
        store.restore(ChangeSet(header: header, stored: kept), by: judge, &keyring)
      {
        continue
      }
      damaged += 1
      store.unreadable.insert(reference)
    }
    for (chain, covered) in stored.vector.chains { store.log.restore(chain, covered: covered) }
    for (chain, covered) in stored.lost.chains { store.log.restore(chain, lost: covered) }
    store.loss = stored.loss
    for (ordinal, bytes) in stored.drafts.sorted(by: { $0.key < $1.key }) {
      if let draft = Draft(ordinal: ordinal, decoding: bytes) {
        store.drafts.restore(draft)
      } else {
        damaged += 1
      }
    }
    for (number, bytes) in stored.refusals.sorted(by: { $0.key < $1.key }) {
      if let refusal = Refusal(number: number, decoding: bytes) {
        store.refusals.restore(refusal)
      } else {
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
    _ = store.state.refresh(store.state.slots.keys)
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
      case .judged(let opened) = judge.open(changeSet, box: box)
    else { return false }
    log.insert(changeSet)
    for (index, entry, digest) in opened.entries {
      let home = EntryHome(changeSet: changeSet.reference, index: index)
      _ = merge(KeptEntry(entry: entry, digest: digest, home: home))
    }
    for index in opened.quarantined {
      quarantined += 1
      _ = log.quarantine(EntryHome(changeSet: changeSet.reference, index: index))
    }
    return true
  }

  /// The latest clock of a change set or draft.
  var latestStored: HybridTime {
    max(
      log.changeSets.values.lazy.map(\.clock).max() ?? .zero,
      drafts.drafts.lazy.map(\.clock).max() ?? .zero)
  }

  // MARK: Damage

  /// Whether damaged data is missing that no device has returned, and whose loss nobody has
  /// accepted.
  var isLacking: Bool { log.hasLost && loss?.isAccepted != true || !unreadable.isEmpty }

  var missing: StoreLoss? {
    guard isLacking else { return nil }
    let known = log.hasLost && loss?.isAccepted != true ? loss : nil
    return StoreLoss(
      changeSets: (known?.changeSets ?? 0) + unreadable.count, entries: known?.entries ?? 0)
  }

  /// Ends the loss: all is covered again, so unreadable change sets are superseded.
  mutating func endLoss() -> [Mutation] {
    defer { (loss, unreadable) = (nil, []) }
    return (loss == nil ? [] : [.setLoss(identifier, nil)])
      + unreadable.sorted().map { .removeChangeSet(identifier, $0) }
  }

  /// Called when a person accepts the loss.
  mutating func acceptLoss() -> [Mutation] {
    guard isLacking else { return [] }
    loss = StoreLoss(
      changeSets: loss?.changeSets ?? 0, entries: loss?.entries ?? 0, isAccepted: true)
    defer { unreadable = [] }
    return [.setLoss(identifier, loss)]
      + unreadable.sorted().map { .removeChangeSet(identifier, $0) }
  }

  /// Handles damage: covers nothing any more, so that peers send everything again. Data that is
  /// kept is ignored then. If `damage` is nil, only change sets cannot be read.
  mutating func drop(_ damage: StoreLoss?) -> [Mutation] {
    guard damage != nil || !unreadable.isEmpty else { return [] }
    let old = log.hasLost && loss?.isAccepted == false ? loss : nil
    let mutations = log.lose(in: identifier)
    guard let damage else { return mutations }
    loss = StoreLoss(
      changeSets: (old?.changeSets ?? 0) + damage.changeSets,
      entries: (old?.entries ?? 0) + damage.entries)
    return mutations + [.setLoss(identifier, loss)]
  }
}

extension [DeviceID: [Incarnation: UInt64]] {
  fileprivate var chains: [(ChainID, UInt64)] {
    flatMap { device, incarnations in
      incarnations.map { (ChainID(device: device, incarnation: $0.key), $0.value) }
    }
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
