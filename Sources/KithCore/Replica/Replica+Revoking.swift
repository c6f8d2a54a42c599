internal import KithCrypto

/// What becomes of the entries of revoked devices (`Docs/Protocol.md`, "Membership"). From the
/// moment at which a
/// device is known to be revoked, its chains are withheld: not told of, not sent, not compared. The
/// revoker publishes their entries again at once, other members those that nobody has carried over
/// after a while; with that the chains are dropped.
extension Replica {
  /// Withholds the chains of devices that are revoked now, drops those that hold nothing, and forgets
  /// where the devices were met and what they cover.
  mutating func forget(_ revoked: Set<DeviceID>) {
    var mutations: [Mutation] = []
    for device in revoked.sorted() {
      knowledge[device] = nil
      heard[device] = nil
      if addresses.removeValue(forKey: device) != nil {
        mutations.append(.setAddresses(device, []))
        effects.append(.addresses([device: []]))
      }
    }
    func others(_ vectors: [StoreIdentifier: [ChainID: UInt64]])
      -> [StoreIdentifier: [ChainID: UInt64]]
    { vectors.mapValues { $0.filter { !revoked.contains($0.key.device) } } }
    knowledge = knowledge.mapValues(others)
    for (id, session) in sessions { sessions[id]?.vectors = others(session.vectors) }
    for identifier in stores.keys.sorted() {
      guard var store = stores.removeValue(forKey: identifier) else { continue }
      store.log.withhold(revoked)
      store.untold = store.untold.filter { !revoked.contains($0.device) }
      if store.withheldEntries.isEmpty { mutations += store.log.dropWithheld(in: identifier) }
      stores[identifier] = store
    }
    forgetHearsay(of: revoked)
    if !mutations.isEmpty { effects.append(.persist(mutations)) }
  }

  /// What a peer says of its stores, without revoked devices: nothing of theirs is compared. Where
  /// there was something, the digest is of another state than ours can be.
  func withoutRevoked(_ have: Have) -> Have {
    var have = have
    have.stores = have.stores.map { theirs in
      var theirs = theirs
      let count = theirs.vector.count
      theirs.vector = theirs.vector.filter { !roster.isRevoked($0.key.device) }
      if theirs.vector.count < count { theirs.digest = nil }
      return theirs
    }
    return have
  }

  /// Publishes again, under this device's name, what revoked devices wrote and nobody has carried
  /// over, and drops their change sets in the same commit.
  mutating func inheritFromRevoked() {
    for identifier in stores.keys.sorted() {
      guard stores[identifier]?.log.holdsWithheld == true,
        let mutations = inherit(identifier)
      else { continue }
      effects.append(.persist(mutations + [.setClock(clock.latest)]))
      // Peers were sent no covers until now. Each is sent everything above its vector.
      for id in sessions.keys.sorted() where exchanges(id) {
        guard sessions[id]?.answered.contains(identifier) == true else { continue }
        sessions[id]?.behind.insert(identifier)
        catchUp(id)
      }
      effects.append(.progress)
    }
  }

  private mutating func inherit(_ identifier: StoreIdentifier) -> [Mutation]? {
    guard let store = stores[identifier] else { return nil }
    // The plaintext that its author sealed, byte for byte: an entry has one encoding.
    let entries = store.withheldEntries.map { ($0.entry, $0.entry.plaintext()) }
    guard !entries.isEmpty, !Canary.leaveWhatTheRevokedWrote.isPlanted else {
      return stores[identifier]?.log.dropWithheld(in: identifier) ?? []
    }
    guard roster.isMember(keys.id), !isBarren, let sealer = sealer(for: identifier),
      // Taken out, so that changing it copies nothing.
      var store = stores.removeValue(forKey: identifier)
    else { return nil }
    let chain = sealer.chain
    var mutations: [Mutation] = []
    var last: UInt64 = 0
    for part in Sealer.parts(of: entries) {
      let changeSet = sealer.seal(
        part.map(\.plaintext), sequence: (store.log.chains[chain]?.received ?? 0) + 1,
        clock: tick(), noncePrefix: entropy.draw())
      mutations += store.inherit(changeSet, part)
      last = changeSet.header.sequence
    }
    mutations += store.log.dropWithheld(in: identifier)
    if let covered = store.log.cover(chain, through: last) {
      mutations.append(.setVector(identifier, chain.device, chain.incarnation, covered))
    }
    stores[identifier] = store
    return mutations
  }
}

extension StoreReplica {
  /// Entries of the state whose sealed form is withheld, by key, newest first.
  ///
  /// - Complexity: O(*n* log *n*) in the keys where anything is withheld.
  var withheldEntries: [KeptEntry] {
    guard log.holdsWithheld else { return [] }
    return state.slots.sorted { $0.key < $1.key }.flatMap { _, slot in
      slot.kept.filter { $0.home.map { log.isWithheld($0.changeSet.device) } ?? false }
    }
  }

  /// Keeps a change set of our own as the home of entries that had another. Nothing that is shown
  /// changes.
  fileprivate mutating func inherit(
    _ changeSet: ChangeSet, _ part: [(entry: Entry, plaintext: [UInt8])]
  ) -> [Mutation] {
    var (mutations, previous) = begin(changeSet)
    for (index, (entry, plaintext)) in part.enumerated() {
      let index = UInt32(index)
      let home = EntryHome(changeSet: changeSet.reference, index: index)
      _ = state.rehome(entry.key, Blake2b.digest256(plaintext), to: home)
      if let box = changeSet.stored.entries[index] {
        mutations.append(.putEntry(identifier, changeSet.reference, index: index, box: box))
      }
    }
    return mutations + log.drop([], alsoConsidering: previous, in: identifier)
  }
}
