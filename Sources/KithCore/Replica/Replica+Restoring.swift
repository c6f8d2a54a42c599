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
        store.unreadable += 1
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
    store.log.insert(changeSet)
    if !store.log.learnReplacement(of: changeSet.header).isEmpty { store.mayLack = true }
    guard let author = roster.certificate(of: changeSet.header.chain.device),
      let box = keyring.sharedBox(epoch: changeSet.header.epoch, author: author),
      case .judged(let judged) = open(changeSet, box: box)
    else {
      counters.damaged += changeSet.stored.entries.isEmpty ? 0 : 1
      store.unreadable += changeSet.stored.entries.isEmpty ? 0 : 1
      return
    }
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
      store.log.changeSets.values.lazy.filter { !store.log.isVoid($0) }.map(\.clock)
        + store.drafts.map(\.clock)
    }.max() ?? .zero
  }

  /// Drops what storage found damaged. Of the stores concerned nothing counts as covered any more, so
  /// that peers give everything again; what is kept already is passed over. Returns whether this
  /// device has to go on under a new incarnation, for something of its own may be missing.
  mutating func dropDamage() -> Bool {
    let found = damage
    damage = StorageDamage()
    guard found.rows > 0 else { return false }
    var mutations: [Mutation] = [.dropDamaged]
    var isParted = false
    for identifier in found.stores.sorted() {
      guard let chain = ownChain else { continue }
      isParted = isParted || stores[identifier]?.log.chains[chain] != nil
      mutations += stores[identifier]?.log.lose(in: identifier) ?? []
    }
    effects.append(.persist(mutations + [.setClock(clock.latest)]))
    effects.append(.report(.damaged(rows: found.rows, stores: found.stores.sorted())))
    return isParted
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
