internal import KithCrypto

extension Replica {
  /// A store as storage remembers it. Signatures were checked before anything was stored.
  mutating func restored(
    _ identifier: StoreIdentifier, _ stored: StoredStore
  ) -> StoreReplica {
    var store = StoreReplica(
      identifier: identifier, policy: stored.policy, isProvisional: stored.isProvisional)
    store.log.withhold(roster.membership.revoked.subtracting([keys.id]))
    for reference in stored.changeSets.keys.sorted() {
      guard let kept = stored.changeSets[reference],
        let header = try? ChangeSetHeader(decoding: kept.header)
      else {
        counters.damaged += 1
        continue
      }
      restore(ChangeSet(header: header, stored: kept), into: &store)
    }
    for (device, incarnations) in stored.vector {
      for (incarnation, covered) in incarnations {
        store.log.restore(ChainID(device: device, incarnation: incarnation), covered: covered)
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
    guard let author = roster.certificate(of: changeSet.header.chain.device),
      let box = keyring.sharedBox(epoch: changeSet.header.epoch, author: author),
      case .judged(let judged) = open(changeSet, box: box)
    else {
      counters.damaged += changeSet.stored.entries.isEmpty ? 0 : 1
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

extension ChangeSetReference: Comparable {
  /// By device, incarnation, sequence and digest.
  public static func < (left: Self, right: Self) -> Bool {
    if left.device != right.device { return left.device < right.device }
    if left.incarnation != right.incarnation { return left.incarnation < right.incarnation }
    if left.sequence != right.sequence { return left.sequence < right.sequence }
    return left.digest < right.digest
  }
}
