internal import KithCrypto

/// Publishes this device's drafts, and revoked devices' entries again.
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

  private func seal(
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
  private mutating func insertOwn(
    _ changeSet: ChangeSet, insert: (inout Self, UInt32) -> [EntryLocation]
  ) -> [Mutation] {
    let previous = log.insert(changeSet)
    unsentChains.insert(changeSet.header.chain)
    let indices = changeSet.stored.entries.keys.sorted()
    let dropped = indices.flatMap { insert(&self, $0) }
    return changeSet.rows(of: indices, in: identifier)
      + log.drop(dropped, alsoConsidering: previous, in: identifier)
  }

  private mutating func cover(_ changeSets: [ChangeSet]) -> [Cover] {
    guard let last = changeSets.last?.header else { return [] }
    let before = log.chains[last.chain]?.covered ?? 0
    return cover(last.chain, through: last.sequence).map {
      [Cover(chain: last.chain, from: before, through: $0)]
    } ?? []
  }

  // MARK: Revoked devices

  /// Withholds revoked devices' chains (`Docs/Protocol.md`, "Membership"). Drops them if no kept
  /// entry is in them.
  mutating func withhold(_ revoked: Set<DeviceID>) -> [Mutation] {
    log.withhold(revoked)
    unsentChains = unsentChains.filter { !revoked.contains($0.device) }
    return withheldEntries.isEmpty ? log.dropWithheld(in: identifier) : []
  }

  /// Carries over revoked devices' entries that no device has carried over, and drops those
  /// devices' change sets. The shown values stay.
  ///
  /// Returns nil if the entries wait for a sealer.
  mutating func carryOver(
    by sealer: Sealer?, clock: inout TimeKeeper, entropy: inout any Entropy
  ) -> [Mutation]? {
    // Equals the author's plaintext, since an entry has one encoding.
    let entries = withheldEntries.map { ($0.entry, $0.entry.plaintext()) }
    guard !entries.isEmpty else { return log.dropWithheld(in: identifier) }
    guard let sealer else { return nil }
    var mutations: [Mutation] = []
    var changeSets: [ChangeSet] = []
    for part in Sealer.parts(of: entries) {
      let changeSet = seal(part, by: sealer, clock: clock.tick(), &entropy)
      mutations += insertOwn(changeSet) { store, index in
        let (entry, plaintext) = part[Int(index)]
        let location = EntryLocation(changeSet: changeSet.reference, index: index)
        _ = store.state.relocate(entry.key, Blake2b.digest256(plaintext), to: location)
        return []
      }
      changeSets.append(changeSet)
    }
    return mutations + log.dropWithheld(in: identifier)
      + cover(changeSets).map { $0.mutation(in: identifier) }
  }

  /// Kept entries with withheld boxes, by key, newest first.
  ///
  /// - Complexity: O(*n* log *n*) in the keys if anything is withheld.
  private var withheldEntries: [KeptEntry] {
    guard log.holdsWithheld else { return [] }
    return state.slots.sorted { $0.key < $1.key }.flatMap { _, slot in
      slot.kept.filter { $0.location.map { log.isWithheld($0.changeSet.device) } ?? false }
    }
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
