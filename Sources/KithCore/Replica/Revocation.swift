internal import KithCrypto

/// Once a device is known to be revoked, its chains are withheld: not announced, sent or compared
/// (`Docs/Protocol/duties.md`, "Carrying over"). The revoker carries over their entries at once;
/// other members later carry over the rest. Both then drop the chains.
extension Replica {
  /// Revokes, makes an epoch and carries over the entries in one step, so that no work is left once
  /// it is durable.
  mutating func revoke(_ device: DeviceID, keeping staying: Set<DeviceID>) {
    do throws(MembershipError) {
      apply(try members.revoke(device, keeping: staying, at: now.wallMilliseconds))
      apply(members.makeEpochIfNone(&entropy))
      carryOverFromRevoked()
    } catch {
      effects.append(.refusedMembership(error))
    }
  }

  /// Ends former members' sessions; a revoked one is first sent its revocation, and nothing else.
  /// Unless revoked itself, withholds revoked devices' chains, and forgets what they told.
  mutating func endSessionsOfFormerMembers(_ revoked: [DeviceID]) {
    for id in links.keys.sorted() {
      if let joiner = links[id]?.joiner, roster.isRevoked(joiner) { end(id, .revoked) }
      guard let device = links[id]?.device, !roster.isMember(device) else { continue }
      if roster.isRevoked(device) { send(members.revocation(for: device), on: id) }
      end(id, .revoked)
    }
    for device in revoked {
      report(.revoked(device, by: roster.revocation(of: device)?.by ?? []))
    }
    let others = Set(revoked).subtracting([keys.id])
    if !isRevoked, !others.isEmpty { forget(others) }
  }

  /// Withholds newly revoked devices' chains, drops those that hold nothing, and forgets the
  /// devices' addresses, coverage, times and limits.
  private mutating func forget(_ revoked: Set<DeviceID>) {
    var mutations: [Mutation] = []
    for device in revoked.sorted() {
      if contacts.forget(device) {
        mutations.append(.addresses(device, []))
        effects.append(.addresses([device: []]))
      }
      _ = clockDifferences.agree(with: device)
      storesLeftOut[device] = nil
      timeKeeper.forget(device)
    }
    coverage.forget(revoked)
    for id in links.keys { links[id]?.forget(revoked) }
    for identifier in stores.keys.sorted() {
      mutations += stores[identifier]?.withhold(revoked) ?? []
    }
    // The vectors no longer contain their chains.
    for identifier in stores.keys { vectorChanged(in: identifier) }
    if !mutations.isEmpty { effects.append(.persist(mutations)) }
  }

  // MARK: Carrying over

  /// Whether a revoked device's entries wait to be carried over.
  var holdsWithheld: Bool { stores.values.contains(where: \.log.holdsWithheld) }

  /// Carries over revoked devices' entries that nobody has carried over yet, and drops those
  /// devices' change sets in the same commit.
  mutating func carryOverFromRevoked() {
    let mayPublish = roster.isMember(keys.id) && !hasNoIncarnations
    for identifier in stores.keys.sorted() where stores[identifier]?.log.holdsWithheld == true {
      let sealer = mayPublish ? sealer(for: identifier) : nil
      let mutations = stores[identifier]?.carryOver(
        by: sealer, clock: &timeKeeper, entropy: &entropy)
      guard let mutations else { continue }
      carryOut(StoreOutcome(mutations: mutations, hasProgress: true), in: [identifier])
      // Covers were withheld until now. Each peer is sent everything above its vector again.
      for id in links.keys.sorted() where links[id]?.queueAgain(identifier) == true { catchUp(id) }
    }
  }
}

/// A revocation in one store.
extension StoreReplica {
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
