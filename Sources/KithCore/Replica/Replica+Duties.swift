internal import KithCrypto

/// New epochs, lockboxes, and what revoked devices leave behind (`Docs/Protocol.md`, "Membership").
extension Replica {
  /// The epochs under whose keys sessions are taken and made now, the current one first: older ones
  /// only while a member may not have moved on, or a revoked device may still have to learn that it
  /// is one. None once this device is revoked.
  ///
  /// - Complexity: O(*n*) in the devices.
  public func handshakeEpochs(at instant: Instant) -> [EpochKeys] {
    guard !isRevoked else { return [] }
    guard let current = keyring.current else { return keyring.newestFirst }
    let isBehind = roster.membership.certificates.keys.contains { device in
      guard device != keys.id else { return false }
      if roster.isMember(device) { return heard[device]?.epoch != current.id }
      guard let revocation = roster.revocation(of: device), !duties.told.contains(device) else {
        return false
      }
      let end = revocation.issued.addingReportingOverflow(Limits.revocationNewsMilliseconds)
      return !end.overflow && instant.wallMilliseconds < end.partialValue
    }
    return isBehind ? keyring.newestFirst : [current]
  }

  // MARK: When

  /// Looks again after a random wait, if there is something to do.
  mutating func scheduleDuties() {
    guard duties.dueAt == nil, hasDuties else { return }
    // Who waits for another's secret waits longer before making one of its own.
    let least =
      keyring.current == nil && hasUsableEpoch
      ? Limits.epochPatienceMilliseconds : Limits.dutyWaitMilliseconds
    let random = entropy.draw(Digest128.self).bytes.prefix(4).reduce(0) { $0 << 8 | UInt64($1) }
    duties.dueAt = now.monotonicMilliseconds + least + random % (4 * Limits.dutyWaitMilliseconds)
  }

  private var hasDuties: Bool {
    guard roster.isMember(keys.id), roster.genesis != nil else { return false }
    return keyring.current == nil || !roster.orphans.isEmpty
      || stores.values.contains(where: \.log.holdsWithheld)
      || !duties.hasNoRoomForLockboxes && keyring.isLacked(in: roster)
  }

  /// Whether there is an epoch to publish under, were its secret known here.
  private var hasUsableEpoch: Bool {
    roster.epochStates().values.contains(where: roster.isUsable)
  }

  mutating func fulfilDutiesIfDue() {
    guard !isJoining, let dueAt = duties.dueAt, now.monotonicMilliseconds >= dueAt else { return }
    duties.dueAt = nil
    guard roster.isMember(keys.id) else { return }
    let orphans = roster.revokingOrphans(at: now.wallMilliseconds, keys: keys)
    if !orphans.isEmpty { learn(orphans) }
    if mayMakeEpoch() { makeEpochIfNone() }
    let lockboxes = keyring.lockboxesForMembersWithoutEpochs(
      in: roster, keys: keys, entropy: &entropy)
    if !lockboxes.isEmpty {
      learn(lockboxes)
      duties.hasNoRoomForLockboxes = lockboxes.allSatisfy { roster.record($0.id) == nil }
    }
    inheritFromRevoked()
    scheduleDuties()
  }

  /// Whether another epoch may end a leak, if one did. A member that seals each new epoch to a revoked
  /// device would have us make them without end; after a few we go on under the newest.
  private mutating func mayMakeEpoch() -> Bool {
    guard keyring.isNewestLeaked else { return true }
    let time = now.monotonicMilliseconds
    duties.madeBecauseOfLeaks.removeAll { $0 + Limits.leakWindowMilliseconds <= time }
    guard duties.madeBecauseOfLeaks.count < Limits.epochsBecauseOfLeaks else {
      keyring.goOn(despite: roster.membership.revoked, in: roster)
      return false
    }
    duties.madeBecauseOfLeaks.append(time)
    return true
  }

  /// Makes an epoch for the members of now where there is none to publish under.
  mutating func makeEpochIfNone() {
    guard keyring.current == nil,
      let records = keyring.nextEpoch(for: roster, keys: keys, entropy: &entropy)
    else { return }
    learn(records)
  }
}
