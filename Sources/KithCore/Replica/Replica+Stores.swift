internal import KithCrypto

/// Inputs about stores. ``StoreReplica`` has the rules. This extension gives it the data of the
/// account that it needs, and turns its outcomes into effects.
extension Replica {
  /// Turns the outcomes of stores into effects: one commit, with the clock and the new state of
  /// their drafts. No other method turns an outcome into effects.
  mutating func carryOut(_ outcome: StoreOutcome, in identifiers: [StoreIdentifier]) {
    for report in outcome.reports {
      counters.count(report)
      effects.append(.report(report))
    }
    effects += outcome.views.map(Effect.view)
    var mutations = outcome.mutations
    for identifier in identifiers {
      mutations += stores[identifier]?.drafts.save(in: identifier) ?? []
    }
    if !mutations.isEmpty { effects.append(.persist(mutations + [.setClock(clock.latest)])) }
    if outcome.hasProgress { effects.append(.progress) }
  }

  /// The values by which this device judges change sets.
  var judge: Judge {
    Judge(own: keys.id, ownChain: ownChain, roster: roster, repeater: repeater)
  }

  // MARK: Opening

  mutating func open(_ identifier: StoreIdentifier, policy: Policy) {
    guard policy.isWithinBounds else {
      effects.append(.refusedStore(identifier, .policyOutOfBounds(policy)))
      return
    }
    if let store = stores[identifier] {
      if !store.isOpened { markOpened(identifier) }
      if store.policy != policy {
        changePolicy(of: identifier, to: policy)
      } else if !store.isOpened {
        // More of it is kept from here on.
        sendHaves(only: [identifier])
      }
      return
    }
    guard stores.count < Limits.stores else {
      effects.append(.refusedStore(identifier, .tooManyStores(limit: Limits.stores)))
      return
    }
    create(identifier, policy: policy)
    markOpened(identifier)
    // Peers that do not have it yet begin it; those that do answer.
    sendHaves(only: [identifier])
  }

  /// A program on this host wants the store.
  private mutating func markOpened(_ identifier: StoreIdentifier) {
    stores[identifier]?.isOpened = true
    effects.append(.persist([.setOpened(identifier)]))
  }

  /// Begins a store with nothing in it.
  mutating func create(_ identifier: StoreIdentifier, policy: Policy) {
    stores[identifier] = StoreReplica(identifier: identifier, policy: policy)
    effects.append(.persist([.putStore(identifier, policy)]))
  }

  private mutating func changePolicy(of identifier: StoreIdentifier, to policy: Policy) {
    let author = keys.id
    guard let outcome = stores[identifier]?.change(to: policy, author: author) else { return }
    carryOut(outcome, in: [identifier])
    for id in links.keys { links[id]?[identifier].isMismatched = false }
    sendHaves(only: [identifier])
  }

  // MARK: Writing

  mutating func write(_ id: WriteID, _ identifier: StoreIdentifier, _ operations: [Operation]) {
    let author = keys.id
    do throws(WriteError) {
      guard !isRevoked else { throw .revoked }
      let views = try stores[identifier]?.write(operations, author: author, clock: &timeKeeper)
      guard let views else { throw .unknownStore(identifier) }
      effects += views.map(Effect.view)
      stores[identifier]?.waiting.append(id)
      effects.append(.accepted(id))
    } catch {
      effects.append(.refused(id, error))
    }
  }

  mutating func adopt(_ id: WriteID, _ identifier: StoreIdentifier, _ writes: [LocalWrite]) {
    guard !isRevoked else { return effects.append(.refused(id, .revoked)) }
    let author = keys.id
    let isAlone = !roster.sortedMembers.contains { $0.device != author }
    let outcome = stores[identifier]?.adopt(
      writes, author: author, isAlone: isAlone, clock: &timeKeeper)
    guard let outcome else { return effects.append(.refused(id, .unknownStore(identifier))) }
    carryOut(outcome, in: [identifier])
    stores[identifier]?.waiting.append(id)
    effects.append(.accepted(id))
  }

  /// Stores whose adopted writes may still be in the local stores.
  package var adoptingStores: [StoreIdentifier] {
    stores.filter { $0.value.adopted > .zero }.keys.sorted()
  }

  mutating func takeRefusals(of identifier: StoreIdentifier, through number: UInt64) {
    guard let outcome = stores[identifier]?.takeRefusals(through: number) else { return }
    carryOut(outcome, in: [identifier])
  }

  // MARK: Publishing

  /// Publishes the drafts that can be published, makes the rest durable, and tells peers the new
  /// coverage.
  mutating func flush() {
    let flushed = stores.keys.sorted().filter(needsFlush)
    var outcome = StoreOutcome()
    var batches: [Batch] = []
    for identifier in flushed where canPublish(identifier) {
      if let batch = publish(identifier, noting: &outcome) { batches.append(batch) }
    }
    carryOut(outcome, in: flushed)
    for identifier in flushed {
      effects += stores[identifier]?.waiting.map(Effect.durable) ?? []
      stores[identifier]?.waiting = []
    }
    for batch in batches { push(batch, except: nil) }
    tellProgress()
  }

  /// Whether drafts of a store are published now: there is a peer, and its data was applied
  /// (`Docs/Protocol.md`, "Writing and publishing"); or a device joins, which has nothing.
  func canPublish(_ identifier: StoreIdentifier) -> Bool {
    guard stores[identifier] != nil, !isJoining, incarnation != nil,
      keyring.current != nil, roster.isMember(keys.id),
      links.values.contains(where: {
        $0.isExchanging && ($0.joiner != nil || $0[identifier].isPulled)
      })
    else { return false }
    return !isBarren
  }

  /// Publishes all drafts of a store. Returns the batch for peers.
  private mutating func publish(
    _ identifier: StoreIdentifier, noting outcome: inout StoreOutcome
  ) -> Batch? {
    guard let sealer = sealer(for: identifier),
      let published = stores[identifier]?.publish(
        by: sealer, clock: &timeKeeper, entropy: &entropy)
    else { return nil }
    outcome.mutations += published.mutations + pruneRemovals(of: identifier)
    return published.batch
  }

  /// The sealer with which this device publishes now; nil if it cannot publish.
  private mutating func sealer(for identifier: StoreIdentifier) -> Sealer? {
    guard let epoch = keyring.current, let chain = ownChain,
      let certificate = roster.certificate(of: keys.id),
      let box = members.keyring.sharedBox(epoch: epoch.id, author: certificate)
    else { return nil }
    return Sealer(
      box: box, storeTag: epoch.storeTag(of: identifier), epoch: epoch.id, chain: chain,
      account: account, keys: keys)
  }

  /// Forgets removed entries beyond the limit.
  private mutating func pruneRemovals(of identifier: StoreIdentifier) -> [Mutation] {
    guard stores[identifier]?.hasExcessRemovals == true else { return [] }
    let others = roster.sortedMembers.map(\.device).filter { $0 != keys.id }
    let covered = others.map { coverage.covered(by: $0, of: identifier) }
    return stores[identifier]?.pruneRemovals { home in
      let chain = ChainID(device: home.changeSet.device, incarnation: home.changeSet.incarnation)
      return covered.allSatisfy { $0[chain] ?? 0 >= home.changeSet.sequence }
    } ?? []
  }

  /// Publishes again, under this device's name, the entries of revoked devices that nobody has
  /// carried over, and drops those devices' change sets in the same commit.
  mutating func inheritFromRevoked() {
    let mayPublish = roster.isMember(keys.id) && !isBarren
    for identifier in stores.keys.sorted() where stores[identifier]?.log.holdsWithheld == true {
      let sealer = mayPublish ? sealer(for: identifier) : nil
      let mutations = stores[identifier]?.inherit(
        by: sealer, clock: &timeKeeper, entropy: &entropy)
      guard let mutations else { continue }
      carryOut(StoreOutcome(mutations: mutations, hasProgress: true), in: [identifier])
      // Peers were sent no covers until now. Each is sent everything above its vector.
      for id in links.keys.sorted() where links[id]?.oweAgain(identifier) == true { catchUp(id) }
    }
  }

  // MARK: Batches

  /// Applies a batch, publishes the drafts that can be published now, and passes the batch on.
  mutating func apply(
    _ batch: Batch, taint: Taint, from id: SessionID, _ peer: DeviceID
  ) {
    var judge = judge
    for author in Set(batch.changeSets.lazy.map(\.header.chain.device)) {
      judge.budgets[author] = AuthorBudget(
        of: author, beside: batch.store, among: stores, own: keys.id)
    }
    var taint = taint
    let earlier = links[id]?[batch.store].unfinished
    if let earlier { taint.follow(earlier.taint) }
    let chainCount = stores[batch.store]?.log.chains.count
    let taken = stores[batch.store]?.take(
      batch, tainted: taint, from: peer, by: judge, &members.keyring)
    guard var intake = taken else { return }
    timeKeeper.witness(intake.latest)
    if stores[batch.store]?.log.chains.count != chainCount { learnChains(of: batch.store) }
    let isPiece = batch.isUnfinished || earlier != nil
    let isNews = earlier?.isNews == true || !intake.passedOn.isEmpty || !intake.covered.isEmpty
    links[id]?[batch.store].noteApplied(batch, intake.taint, isNews: isNews)
    // Before anything is published, because this database does not know all of its chain.
    if intake.showsCopy { meetClone() }
    var own: Batch?
    if stores[batch.store]?.drafts.isEmpty == false, canPublish(batch.store) {
      own = publish(batch.store, noting: &intake.outcome)
    }
    intake.outcome.mutations += pruneRemovals(of: batch.store)
    let isWithholding = stores[batch.store]?.log.holdsWithheld == true
    let relayed = Batch(
      store: batch.store, isEverything: batch.isEverything, changeSets: intake.passedOn,
      covers: isWithholding || isPiece ? [] : intake.covered)
    carryOut(intake.outcome, in: [batch.store])
    if !isPiece || batch.isEverything {
      if !relayed.isEmpty { push(relayed, except: id) }
    } else if isNews, !batch.isUnfinished {
      // Pieces are passed on together, once they are covered.
      push(relayed, isInPieces: true, except: id)
    }
    if let own { push(own, except: nil) }
    notePulled(on: id)
  }

  // MARK: Damage

  /// Drops the damaged data that storage found. Returns whether this device has to go on under a
  /// new incarnation, because data of its own may be missing.
  mutating func dropDamage() -> Bool {
    let found = damage
    damage = StorageDamage()
    var outcome = StoreOutcome()
    var isParted = false
    if found.rows > 0 {
      outcome.mutations = [.dropDamaged]
      outcome.reports = [.damaged(rows: found.rows, stores: found.stores.keys.sorted())]
    }
    if let chain = ownChain {
      for identifier in stores.keys.sorted() {
        let damage = found.stores[identifier]
        if damage != nil, stores[identifier]?.log.chains[chain] != nil { isParted = true }
        outcome.mutations += stores[identifier]?.drop(damage) ?? []
      }
    }
    carryOut(outcome, in: [])
    return isParted
  }

  /// A person accepts the loss of a store's missing data.
  mutating func acceptLoss(of identifier: StoreIdentifier) {
    guard let mutations = stores[identifier]?.acceptLoss(), !mutations.isEmpty else { return }
    // There is no damage left to report.
    if !stores.values.contains(where: \.isLacking) { counters.damaged = 0 }
    carryOut(
      StoreOutcome(
        mutations: mutations, reports: [.lossAccepted(store: identifier)], hasProgress: true),
      in: [identifier])
  }
}

extension NodeStatus.Counters {
  /// Counts the facts of a report.
  mutating func count(_ report: Report) {
    switch report {
    case .rejected(_, let count), .misdirected(_, _, _, let count): rejected += count
    case .quarantined(_, _, let count): quarantined += count
    case .fork: forks += 1
    default: break
    }
  }
}
