internal import KithCrypto

extension Replica {
  /// Whether drafts of a store are published now: there is a peer, and what it had was applied
  /// (`Docs/Protocol.md`, "Writing and publishing"); or a device joins, which has nothing.
  func canPublish(_ identifier: StoreIdentifier) -> Bool {
    guard stores[identifier] != nil, !isJoining, incarnation != nil,
      keyring.current != nil, roster.isMember(keys.id),
      sessions.values.contains(where: {
        $0.isExchanging && ($0.joiner != nil || $0.pulled.contains(identifier))
      })
    else { return false }
    return !isBarren
  }

  /// Publishes all drafts of a store: of each key only the last entry, in as few change sets as
  /// their size allows.
  mutating func publish(
    _ identifier: StoreIdentifier
  ) -> (mutations: [Mutation], batch: Batch?) {
    guard let sealer = sealer(for: identifier),
      // Taken out, so that changing it copies nothing.
      var store = stores.removeValue(forKey: identifier)
    else { return ([], nil) }
    let chain = sealer.chain
    let before = store.log.chains[chain]?.covered ?? 0
    let clock: HybridTime = tick()
    let entries = store.state.drafted.values.map { $0.entry.published(at: clock) }
      .sorted { $0.key < $1.key }
    var mutations: [Mutation] = []
    var batch = Batch(store: identifier)
    var publishingClock = clock
    for part in Sealer.parts(of: entries.map { ($0, $0.plaintext()) }) {
      let last = store.log.chains[chain]?.received ?? 0
      let sequence = Canary.reuseASequence.isPlanted ? max(1, last) : last + 1
      let changeSet = sealer.seal(
        part.map(\.plaintext), sequence: sequence, clock: publishingClock,
        noncePrefix: Canary.drawFromTheSystem.isPlanted ? Self.fromTheSystem() : entropy.draw())
      mutations += store.keep(changeSet, part)
      batch.changeSets.append(changeSet)
      publishingClock = tick()
    }
    mutations += store.forgetPublishedDrafts()
    if let last = batch.changeSets.last,
      let covered = store.log.cover(chain, through: last.header.sequence)
    {
      mutations.append(.setVector(identifier, chain.device, chain.incarnation, covered))
      batch.covers = [Cover(chain: chain, from: before, through: covered)]
    }
    stores[identifier] = store
    mutations += pruneRemovals(of: identifier)
    return (mutations, batch.isEmpty ? nil : batch)
  }

  /// What this device publishes with now; nil where it cannot.
  mutating func sealer(for identifier: StoreIdentifier) -> Sealer? {
    guard let epoch = keyring.current, let chain = ownChain,
      let certificate = roster.certificate(of: keys.id),
      let box = keyring.sharedBox(epoch: epoch.id, author: certificate)
    else { return nil }
    return Sealer(
      box: box, storeTag: epoch.storeTag(of: identifier), epoch: epoch.id, chain: chain,
      account: account, keys: keys)
  }

  /// What no core may do: only for the canary.
  private static func fromTheSystem() -> NoncePrefix {
    var system = SystemRandom()
    return system.draw()
  }

  /// Forgets removed entries beyond the limit.
  mutating func pruneRemovals(of identifier: StoreIdentifier) -> [Mutation] {
    guard let count = stores[identifier]?.state.removals.count, count > Limits.removals else {
      return []
    }
    let others = roster.sortedMembers.map(\.device).filter { $0 != keys.id }
    let knowledge = others.map { self.knowledge[$0]?[identifier] ?? [:] }
    guard
      let homes = stores[identifier]?.pruneRemovals(coveredByAll: { home in
        let chain = ChainID(
          device: home.changeSet.device, incarnation: home.changeSet.incarnation)
        return knowledge.allSatisfy { $0[chain] ?? 0 >= home.changeSet.sequence }
      }), !homes.isEmpty
    else { return [] }
    return stores[identifier]?.log.drop(homes, in: identifier) ?? []
  }
}

extension Entry {
  /// A draft's entry as it is published: the room that it claims is claimed now.
  fileprivate func published(at clock: HybridTime) -> Entry {
    Entry(
      key: key, stamp: stamp, content: content, claim: claim.published(at: clock),
      replaced: replaced, fallback: fallback)
  }
}

extension StoreReplica {
  /// Keeps the header of a change set of our own, and says what stood before it.
  mutating func begin(
    _ changeSet: ChangeSet
  ) -> (mutations: [Mutation], previous: [ChangeSetReference]) {
    let previous = log.insert(changeSet)
    untold.insert(changeSet.header.chain)
    let header = Mutation.putHeader(
      identifier, changeSet.reference, header: changeSet.stored.header,
      signature: changeSet.stored.signature)
    return ([header], previous)
  }

  /// Keeps a change set of our own in the place of the drafts that it publishes. What is shown does
  /// not change by it: the room it claims is later than all other room, as the drafts' was.
  fileprivate mutating func keep(
    _ changeSet: ChangeSet, _ part: [(entry: Entry, plaintext: [UInt8])]
  ) -> [Mutation] {
    var (mutations, previous) = begin(changeSet)
    var dropped: [EntryHome] = []
    for (index, (entry, plaintext)) in part.enumerated() {
      let index = UInt32(index)
      state.setDraft(nil, of: entry.key)
      let kept = KeptEntry(
        entry: entry, digest: Blake2b.digest256(plaintext),
        home: EntryHome(changeSet: changeSet.reference, index: index))
      dropped += merge(kept).dropped
      if let box = changeSet.stored.entries[index] {
        mutations.append(.putEntry(identifier, changeSet.reference, index: index, box: box))
      }
    }
    return mutations + log.drop(dropped, alsoConsidering: previous, in: identifier)
  }
}
