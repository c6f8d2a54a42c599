internal import KithCrypto

/// The account's members as this device knows them: the records, the epochs that it can open, and
/// its duties because of them. It knows no store and no session: its methods return the actions to
/// carry out.
struct Members {
  let keys: DeviceKeys
  private(set) var roster: Roster
  var keyring = Keyring()
  /// The revoked devices that were dealt with: their sessions are ended, their chains withheld.
  private var dealtWith: Set<DeviceID>
  /// Revoked devices that were sent their revocation since the start.
  private var told: Set<DeviceID> = []
  private(set) var duties = Duties()
  /// Only for tests: whether this device behaves as if nobody had revoked it.
  var ignoresItsRevocation = false

  init(of roster: Roster, keys: DeviceKeys) {
    self.keys = keys
    self.roster = roster
    keyring.refresh(from: roster, keys: keys)
    dealtWith = roster.membership.revoked
  }

  /// Whether this device was revoked.
  var isRevoked: Bool { !ignoresItsRevocation && roster.isRevoked(keys.id) }

  // MARK: Learning

  /// The changes from records that were learnt.
  struct News {
    /// The records that are new or improved, in the order in which they are sent.
    var records: [Record]
    /// The mutations for storage.
    var mutations: [Mutation]
    /// Devices that were not known to be revoked, ascending.
    var revoked: [DeviceID]
  }

  /// Takes in records. `isOwn`: this device made them. Nil if nothing of them is new.
  mutating func learn(_ records: [CheckedRecord], isOwn: Bool) -> News? {
    // The records that make this device a member stay in storage, even if the roster has no space
    // for them any more.
    let mine = Set(roster.chain(of: keys.id).map(\.id))
    let (fresh, gone) = roster.take(all: records.filter { !isIgnored($0) })
    guard !fresh.isEmpty else { return nil }
    keyring.refresh(from: roster, keys: keys)
    if !isOwn { duties.hasNoRoomForLockboxes = false }
    let revoked = roster.membership.revoked.subtracting(dealtWith)
    dealtWith.formUnion(revoked)
    return News(
      records: fresh.sorted(by: Record.isSentBefore),
      mutations: fresh.map { .putRecord($0.id, $0.encoded) }
        + gone.filter { !mine.contains($0) }.map { .removeRecord($0) },
      revoked: revoked.sorted())
  }

  /// Takes in records that this device made.
  mutating func learn(own records: [Record]) -> News? {
    learn(records.map { CheckedRecord($0, account: roster.account) }, isOwn: true)
  }

  private func isIgnored(_ checked: CheckedRecord) -> Bool {
    guard ignoresItsRevocation, case .revocation(let revocation) = checked.record.kind else {
      return false
    }
    return revocation.device == keys.id
  }

  // MARK: Requests of a person

  mutating func rename(
    _ device: DeviceID, to name: String, at time: UInt64
  ) throws(MembershipError) -> News? {
    let record = try roster.renaming(device, to: name, at: time, keys: keys)
    let news = learn(own: [record])
    guard roster.record(record.id) != nil else { throw .tooManyRecords }
    return news
  }

  mutating func revoke(
    _ device: DeviceID, keeping staying: Set<DeviceID>, at time: UInt64
  ) throws(MembershipError) -> News? {
    learn(own: try roster.revoking(device, keeping: staying, at: time, keys: keys))
  }

  /// Makes an epoch for the members of now if there is none to publish under.
  mutating func makeEpochIfNone(_ entropy: inout any Entropy) -> News? {
    guard keyring.current == nil,
      let records = keyring.nextEpoch(for: roster, keys: keys, entropy: &entropy)
    else { return nil }
    return learn(own: records)
  }

  // MARK: Peers

  /// The member at the other end of a session.
  func device(of peer: SessionPeer) -> DeviceID? {
    roster.device(withTransportKey: peer.transportKey, named: peer.hello.device)
  }

  /// The records that a peer is sent.
  enum OnRecords {
    /// It is revoked: its revocation, and nothing else.
    case revocation([Record])
    /// It has not proved to be a member: the records that prove this device to be one. Once the
    /// peer is recognised, it is sent the rest.
    case proof([Record])
    case all([Record])
  }

  /// Returns the records for a peer: this device's own path first, so that a peer that has never
  /// met it can identify it before anything else.
  ///
  /// Under an older epoch, whose key revoked devices have, a peer proves itself first.
  mutating func records(for peer: SessionPeer, isMember: Bool) -> OnRecords {
    let path = roster.chain(of: keys.id)
    if isMember {
      // The path's records have only its own signatures; whole ones follow.
      return .all(
        path + roster.records.sorted(by: Record.isSentBefore).filter { !path.contains($0) })
    }
    if let revoked = revokedDevice(of: peer) { return .revocation(revocation(for: revoked)) }
    return .proof(peer.isMembershipOnly ? [] : path)
  }

  /// The records that a revoked device is sent.
  mutating func revocation(for device: DeviceID) -> [Record] {
    told.insert(device)
    return roster.revocationRecords(of: device)
  }

  private func revokedDevice(of peer: SessionPeer) -> DeviceID? {
    roster.revokedDevice(withTransportKey: peer.transportKey, named: peer.hello.device)
  }

  /// The records from a stranger that count.
  enum OnStranger {
    /// These are learnt: all of them, if they prove that it is a member; from a revoked device,
    /// only revocations.
    case learn([CheckedRecord])
    /// They prove nothing so far. Its certificates may be a part of the proof. The revocations of
    /// devices above it are to be sent to it.
    case unproved(proof: [CheckedRecord], learn: [CheckedRecord], sends: [Record])
  }

  /// From a peer that has not proved to be a member, only revocations and the proof count: the
  /// certificates up to its own. Records that came together with the proof count too. A proof that
  /// ends at a revoked device is kept too, so that a member revokes the peer.
  func judge(
    _ records: [CheckedRecord], of peer: SessionPeer, after earlier: [CheckedRecord]
  ) -> OnStranger {
    let revocations = records.filter(\.isRevocation)
    if revokedDevice(of: peer) != nil { return .learn(revocations) }
    let proof = earlier + records.filter(\.isProof)
    // Tried on a copy: certificates that prove nothing are not kept.
    var tried = roster
    _ = tried.take(all: proof + revocations)
    let (key, name) = (peer.transportKey, peer.hello.device)
    if tried.device(withTransportKey: key, named: name) != nil {
      return .learn(proof + records.filter { !$0.isProof })
    }
    let above = tried.revocationsAbove(transportKey: key, named: name)
    // A device that a revoked one enrolled is revoked too: for that it has to be known.
    return .unproved(
      proof: proof, learn: above.isEmpty ? revocations : proof + revocations, sends: above)
  }

  /// The epochs under whose keys sessions are accepted and made now, the current one first. Older
  /// ones are included only while a member may not have moved on, or a revoked device may still
  /// have to learn of its revocation. None once this device is revoked. `metUnder`: the epoch under
  /// which a device was met.
  ///
  /// - Complexity: O(*n*) in the devices.
  func handshakeEpochs(
    at instant: Instant, metUnder: (DeviceID) -> EpochID?
  ) -> [EpochKeys] {
    guard !isRevoked else { return [] }
    guard let current = keyring.current else { return keyring.newestFirst }
    let isBehind = roster.membership.certificates.keys.contains { device in
      guard device != keys.id else { return false }
      if roster.isMember(device) { return metUnder(device) != current.id }
      guard let revocation = roster.revocation(of: device), !told.contains(device) else {
        return false
      }
      let end = revocation.issued.addingReportingOverflow(Limits.revocationNewsMilliseconds)
      return !end.overflow && instant.wallMilliseconds < end.partialValue
    }
    return isBehind ? keyring.newestFirst : [current]
  }

  /// A peer's `Have` without the chains of revoked devices, which are not compared. If it had any,
  /// the digest is dropped, because it is of a state that ours cannot equal.
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
}

// MARK: Duties

extension Members {
  /// The duties of this device to the account. One member does them for all, after a random wait,
  /// so that not all members do them at once (`Docs/Protocol.md`, "Membership").
  struct Duties {
    /// When to look again whether something is still to be done, by the monotonic clock.
    fileprivate(set) var dueAt: UInt64?
    /// When epochs were made because the last one had leaked, by the monotonic clock, within an hour.
    fileprivate var madeBecauseOfLeaks: [UInt64] = []
    /// Whether lockboxes were made last for which the roster has no room; until others' records come.
    fileprivate var hasNoRoomForLockboxes = false
  }

  /// Looks again after a random wait, if there is something to do. `holdsWithheld`: a store has entries
  /// that may have to be carried over.
  mutating func schedule(at now: UInt64, holdsWithheld: Bool, _ entropy: inout any Entropy) {
    guard duties.dueAt == nil, hasDuties(holdsWithheld: holdsWithheld) else { return }
    // A device that waits for another's secret waits longer before it makes one of its own.
    let isPatient =
      keyring.current == nil && roster.epochStates().values.contains(where: roster.isUsable)
    let least = isPatient ? Limits.epochPatienceMilliseconds : Limits.dutyWaitMilliseconds
    let random = entropy.draw(Digest128.self).bytes.prefix(4).reduce(0) { $0 << 8 | UInt64($1) }
    duties.dueAt = now + least + random % (4 * Limits.dutyWaitMilliseconds)
  }

  private func hasDuties(holdsWithheld: Bool) -> Bool {
    guard roster.isMember(keys.id), roster.genesis != nil else { return false }
    return keyring.current == nil || !roster.orphans.isEmpty || holdsWithheld
      || !duties.hasNoRoomForLockboxes && keyring.isLacked(in: roster)
  }

  /// The result of doing the duties that are due.
  enum OnDuty {
    case notYet
    /// These records were made. Withheld entries are to be carried over now.
    case done([News])
  }

  mutating func fulfil(at now: Instant, _ entropy: inout any Entropy) -> OnDuty {
    guard let dueAt = duties.dueAt, now.monotonicMilliseconds >= dueAt else { return .notYet }
    duties.dueAt = nil
    guard roster.isMember(keys.id) else { return .notYet }
    var news: [News?] = []
    news.append(learn(own: roster.revokingOrphans(at: now.wallMilliseconds, keys: keys)))
    if mayMakeEpoch(at: now.monotonicMilliseconds) { news.append(makeEpochIfNone(&entropy)) }
    let lockboxes = keyring.lockboxesForMembersWithoutEpochs(
      in: roster, keys: keys, entropy: &entropy)
    if !lockboxes.isEmpty {
      news.append(learn(own: lockboxes))
      duties.hasNoRoomForLockboxes = lockboxes.allSatisfy { roster.record($0.id) == nil }
    }
    return .done(news.compactMap(\.self))
  }

  /// Whether another epoch may end a leak, if one did. A member that seals each new epoch to a revoked
  /// device would have us make them without end; after a few we go on under the newest.
  private mutating func mayMakeEpoch(at now: UInt64) -> Bool {
    guard keyring.isNewestLeaked else { return true }
    duties.madeBecauseOfLeaks.removeAll { $0 + Limits.leakWindowMilliseconds <= now }
    guard duties.madeBecauseOfLeaks.count < Limits.epochsBecauseOfLeaks else {
      keyring.goOn(despite: roster.membership.revoked, in: roster)
      return false
    }
    duties.madeBecauseOfLeaks.append(now)
    return true
  }
}
