internal import KithCrypto

/// Publishes this device's drafts.
extension StoreReplica {
  /// Publishes the entry of each drafted key. The shown values stay: like the drafts' claims,
  /// the new ones are later than all others.
  ///
  /// - Returns: The mutations, and the batch for peers, if any.
  mutating func publish(
    by sealer: Sealer, clock: inout TimeKeeper, entropy: inout any Entropy
  ) -> (mutations: [Mutation], batch: Batch?) {
    let first: HybridTime = clock.tick()
    let entries = state.drafted.values.map { $0.entry.published(at: first) }
      .sorted { $0.key < $1.key }
    var batch = Batch(store: identifier)
    var mutations: [Mutation] = []
    for part in Sealer.parts(of: entries.map { ($0, $0.plaintext()) }) {
      let changeSet = seal(
        part, by: sealer, clock: batch.changeSets.isEmpty ? first : clock.tick(), &entropy)
      mutations += insertPublished(changeSet, part)
      batch.changeSets.append(changeSet)
    }
    batch.covers = cover(batch.changeSets)
    mutations += drafts.removeAll(in: identifier) + batch.covers.map { $0.mutation(in: identifier) }
    return (mutations, batch.isEmpty ? nil : batch)
  }

  func seal(
    _ part: [(entry: Entry, plaintext: [UInt8])], by sealer: Sealer, clock: HybridTime,
    _ entropy: inout any Entropy
  ) -> ChangeSet {
    let last = log.chains[sealer.chain]?.received ?? 0
    return sealer.seal(
      part.map(\.plaintext), sequence: last + 1, clock: clock, noncePrefix: entropy.draw())
  }

  /// Keeps a change set of this device in place of its drafts.
  private mutating func insertPublished(
    _ changeSet: ChangeSet, _ part: [(entry: Entry, plaintext: [UInt8])]
  ) -> [Mutation] {
    insertOwn(changeSet) { store, index in
      let (entry, plaintext) = part[Int(index)]
      store.state.setDraft(nil, of: entry.key)
      let kept = KeptEntry(
        entry: entry, digest: Blake2b.digest256(plaintext),
        location: EntryLocation(changeSet: changeSet.reference, index: index))
      return store.merge(kept).dropped
    }
  }

  /// Keeps a change set of this device. `insert` puts an entry into the state, and returns the
  /// locations to drop.
  mutating func insertOwn(
    _ changeSet: ChangeSet, insert: (inout Self, UInt32) -> [EntryLocation]
  ) -> [Mutation] {
    let previous = log.insert(changeSet)
    unsentChains.insert(changeSet.header.chain)
    let indices = changeSet.stored.entries.keys.sorted()
    let dropped = indices.flatMap { insert(&self, $0) }
    return changeSet.rows(of: indices, in: identifier)
      + log.drop(dropped, alsoConsidering: previous, in: identifier)
  }

  mutating func cover(_ changeSets: [ChangeSet]) -> [Cover] {
    guard let last = changeSets.last?.header else { return [] }
    let before = log.chains[last.chain]?.covered ?? 0
    return cover(last.chain, through: last.sequence).map {
      [Cover(chain: last.chain, from: before, through: $0)]
    } ?? []
  }
}

extension Cover {
  func mutation(in store: StoreIdentifier) -> Mutation {
    .put(.store(store, .vector(chain)), through.row)
  }
}

extension Entry {
  fileprivate func published(at clock: HybridTime) -> Entry {
    Entry(
      key: key, stamp: stamp, content: content, claim: claim.published(at: clock),
      replaced: replaced, fallback: fallback)
  }
}
