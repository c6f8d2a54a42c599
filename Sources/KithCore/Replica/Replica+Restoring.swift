internal import KithCrypto

extension Replica {
  /// A store as storage remembers it. Signatures were checked before anything was stored, and storage
  /// has compared everything with its checksum. One change set at a time is in memory with its boxes.
  mutating func restored(
    _ identifier: StoreIdentifier, _ stored: StoredStore, _ references: [ChangeSetReference],
    _ changeSet: (ChangeSetReference) throws(StorageError) -> StoredChangeSet?
  ) throws(StorageError) -> StoreReplica {
    var store = StoreReplica(identifier: identifier, policy: stored.policy)
    store.isOpened = stored.isOpened
    store.adopted = stored.adopted
    store.log.withhold(roster.membership.revoked.subtracting([keys.id]))
    for reference in references.sorted() {
      guard let kept = try changeSet(reference),
        let header = try? ChangeSetHeader(decoding: kept.header)
      else {
        counters.damaged += 1
        store.unreadable.insert(reference)
        continue
      }
      restore(ChangeSet(header: header, stored: kept), into: &store)
    }
    for (device, incarnations) in stored.vector {
      for (incarnation, covered) in incarnations {
        store.log.restore(ChainID(device: device, incarnation: incarnation), covered: covered)
      }
    }
    for (device, incarnations) in stored.lost {
      for (incarnation, covered) in incarnations {
        store.log.restore(ChainID(device: device, incarnation: incarnation), lost: covered)
      }
    }
    store.loss = stored.loss
    for (ordinal, bytes) in stored.drafts.sorted(by: { $0.key < $1.key }) {
      if let draft = Draft(ordinal: ordinal, decoding: bytes) {
        store.restore(draft)
      } else {
        counters.damaged += 1
      }
    }
    for (number, bytes) in stored.refusals.sorted(by: { $0.key < $1.key }) {
      if let refusal = Refusal(number: number, decoding: bytes) {
        store.restore(refusal)
      } else {
        counters.damaged += 1
      }
    }
    _ = store.state.refresh(store.state.slots.keys)
    return store
  }

  private mutating func restore(_ changeSet: ChangeSet, into store: inout StoreReplica) {
    guard !changeSet.stored.entries.isEmpty else {
      store.log.insert(changeSet)
      return
    }
    guard let author = roster.certificate(of: changeSet.header.chain.device),
      let box = keyring.sharedBox(epoch: changeSet.header.epoch, author: author),
      case .judged(let judged) = open(changeSet, box: box)
    else {
      counters.damaged += 1
      store.unreadable.insert(changeSet.reference)
      return
    }
    store.log.insert(changeSet)
    for (index, entry, digest) in judged.entries {
      let home = EntryHome(changeSet: changeSet.reference, index: index)
      _ = store.merge(KeptEntry(entry: entry, digest: digest, home: home))
    }
    for index in judged.quarantined {
      store.quarantined += 1
      _ = store.log.quarantine(EntryHome(changeSet: changeSet.reference, index: index))
    }
  }
}

// MARK: Damage

extension Replica {
  /// The latest reading that anything in storage holds.
  var latestStored: HybridTime {
    stores.values.lazy.flatMap { store in
      store.log.changeSets.values.lazy.map(\.clock)
        + store.drafts.map(\.clock)
    }.max() ?? .zero
  }

  /// Drops what storage found damaged. Of the stores concerned nothing counts as covered any more, so
  /// that peers give everything again; what is kept already is passed over. Returns whether this
  /// device has to go on under a new incarnation, for something of its own may be missing.
  mutating func dropDamage() -> Bool {
    let found = damage
    damage = StorageDamage()
    var mutations: [Mutation] = found.rows > 0 ? [.dropDamaged] : []
    var isParted = false
    for identifier in stores.keys.sorted() {
      guard let chain = ownChain, var store = stores.removeValue(forKey: identifier) else {
        continue
      }
      if let hit = found.stores[identifier] {
        isParted = isParted || store.log.chains[chain] != nil
        let old = store.log.hasLost && store.loss?.isAccepted == false ? store.loss : nil
        mutations += store.log.lose(in: identifier)
        store.loss = StoreLoss(
          changeSets: (old?.changeSets ?? 0) + hit.changeSets,
          entries: (old?.entries ?? 0) + hit.entries)
        mutations.append(.setLoss(identifier, store.loss))
      } else if !store.unreadable.isEmpty {
        mutations += store.log.lose(in: identifier)
      }
      stores[identifier] = store
    }
    if !mutations.isEmpty { effects.append(.persist(mutations + [.setClock(clock.latest)])) }
    if found.rows > 0 {
      effects.append(.report(.damaged(rows: found.rows, stores: found.stores.keys.sorted())))
    }
    return isParted
  }

  /// A person accepts that what is missing of a store is gone.
  mutating func acceptLoss(of identifier: StoreIdentifier) {
    guard let mutations = stores[identifier]?.acceptLoss(), !mutations.isEmpty else { return }
    // Nothing is left to say of what was damaged.
    if !stores.values.contains(where: \.isLacking) { counters.damaged = 0 }
    effects += [.persist(mutations), .report(.lossAccepted(store: identifier)), .progress]
  }
}

extension ChangeSetReference: Comparable {
  /// By device, incarnation, sequence and digest.
  public static func < (left: Self, right: Self) -> Bool {
    if left.device != right.device { return left.device < right.device }
    if left.incarnation != right.incarnation { return left.incarnation < right.incarnation }
    if left.sequence != right.sequence { return left.sequence < right.sequence }
    return left.digest < right.digest
  }
}
