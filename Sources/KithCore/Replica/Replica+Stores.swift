internal import KithCrypto

/// ``StoreReplica`` has the rules. It gets the account's data here, and its outcomes become
/// effects.
extension Replica {
  /// Turns an outcome into effects, with one commit that includes the clock, the drafts and the
  /// past values. No other method does so.
  mutating func carryOut(_ outcome: StoreOutcome, in identifiers: [StoreIdentifier]) {
    for report in outcome.reports { self.report(report) }
    effects += outcome.views.map(Effect.view)
    var mutations = outcome.mutations
    let time = now.wallMilliseconds
    for identifier in identifiers {
      mutations += stores[identifier]?.drafts.save(in: identifier) ?? []
      mutations += stores[identifier]?.history?.save(in: identifier, at: time) ?? []
    }
    if !mutations.isEmpty {
      effects.append(.persist(mutations + [.put(.clock, clock.latest.row)]))
    }
    if outcome.hasProgress { effects.append(.progress) }
  }

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
      if !store.isUsedHere { markOpened(identifier) }
      if store.policy != policy {
        changePolicy(of: identifier, to: policy)
      } else if !store.isUsedHere {
        // An opened store keeps more of each author.
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
    // Peers without the store create it; the others answer.
    sendHaves(only: [identifier])
  }

  private mutating func markOpened(_ identifier: StoreIdentifier) {
    stores[identifier]?.isUsedHere = true
    effects.append(.persist([.put(.store(identifier, .opened), [1])]))
  }

  mutating func create(_ identifier: StoreIdentifier, policy: Policy) {
    stores[identifier] = StoreReplica(
      identifier: identifier, policy: policy, keepsHistory: keepsHistory)
    effects.append(.persist([.put(.store(identifier, .policy), policy.row)]))
    vectorChanged(in: identifier)
  }

  private mutating func changePolicy(of identifier: StoreIdentifier, to policy: Policy) {
    let (author, time) = (keys.id, now.wallMilliseconds)
    let outcome = stores[identifier]?.change(to: policy, author: author, at: time)
    guard let outcome else { return }
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
      accept(id, identifier)
    } catch {
      effects.append(.refused(id, error))
    }
  }

  mutating func adopt(_ id: WriteID, _ identifier: StoreIdentifier, _ writes: [LocalWrite]) {
    guard !isRevoked else { return effects.append(.refused(id, .revoked)) }
    let author = keys.id
    let outcome = stores[identifier]?.adopt(
      writes, author: author, isAlone: coverage.isAlone, clock: &timeKeeper)
    guard let outcome else { return effects.append(.refused(id, .unknownStore(identifier))) }
    carryOut(outcome, in: [identifier])
    accept(id, identifier)
  }

  private mutating func accept(_ id: WriteID, _ identifier: StoreIdentifier) {
    stores[identifier]?.waiting.append(id)
    effects.append(.accepted(id))
    let moment = now.monotonicMilliseconds
    for id in carriers.keys { carriers[id]?.schedule?.wrote(at: moment) }
  }

  /// Stores whose adopted writes may still be in the local stores.
  package var adoptingStores: [StoreIdentifier] {
    stores.filter { $0.value.adopted > .zero }.keys.sorted()
  }

  mutating func takeRefusals(of identifier: StoreIdentifier, through number: UInt64) {
    guard let outcome = stores[identifier]?.takeRefusals(through: number) else { return }
    carryOut(outcome, in: [identifier])
  }

  // MARK: History

  /// The values that a key, or any, showed before on this device, newest first.
  ///
  /// - Complexity: O(*n*) in the values kept.
  package func history(
    of identifier: StoreIdentifier, key: Key?, limit: Int
  ) -> [PastValue] {
    stores[identifier]?.history?.newest(limit, of: key, at: now.wallMilliseconds) ?? []
  }

  /// The past values that an undo of a store writes.
  ///
  /// - Complexity: O(*n*) in the values kept.
  package func pastValues(for undo: Undo, of identifier: StoreIdentifier) -> [PastValue] {
    stores[identifier]?.history?.values(for: undo, at: now.wallMilliseconds) ?? []
  }

  mutating func keepHistory(_ keeps: Bool) {
    guard keeps != keepsHistory else { return }
    keepsHistory = keeps
    var mutations: [Mutation] = [.put(.keepsHistory, [keeps ? 1 : 0])]
    for identifier in stores.keys.sorted() {
      mutations += stores[identifier]?.history?.removeAll(in: identifier) ?? []
      stores[identifier]?.history = keeps ? PastValues() : nil
    }
    effects.append(.persist(mutations))
  }

  /// For stores that do not change.
  mutating func dropExpiredHistory() {
    let time = now.wallMilliseconds
    let expired = stores.filter { $0.value.history?.hasExpired(at: time) == true }.keys.sorted()
    if !expired.isEmpty { carryOut(StoreOutcome(), in: expired) }
  }

  // MARK: Damage

  /// Drops the damaged data. Returns whether this device needs a new incarnation, because data of
  /// its own may be missing.
  mutating func dropDamage() -> Bool {
    let found = damage
    damage = StorageDamage()
    var outcome = StoreOutcome()
    var lacksOwnData = false
    if found.rows > 0 {
      outcome.mutations = [.remove(.damaged)]
      let stores = found.loss == nil ? [] : stores.keys.sorted()
      outcome.reports = [.damaged(rows: found.rows, stores: stores)]
    }
    if let chain = ownChain {
      for identifier in stores.keys.sorted() {
        if found.loss != nil, stores[identifier]?.log.chains[chain] != nil { lacksOwnData = true }
        outcome.mutations += stores[identifier]?.drop(found.loss) ?? []
      }
    }
    carryOut(outcome, in: [])
    if !outcome.mutations.isEmpty { forgetObjects() }
    return lacksOwnData
  }

  mutating func acceptLoss(of identifier: StoreIdentifier) {
    guard let mutations = stores[identifier]?.acceptLoss(), !mutations.isEmpty else { return }
    // No damage is left to report.
    if !stores.values.contains(where: \.isLacking) { counters.damaged = 0 }
    carryOut(
      StoreOutcome(
        mutations: mutations, reports: [.lossAccepted(store: identifier)], hasProgress: true),
      in: [identifier])
  }
}
