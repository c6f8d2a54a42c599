internal import KithCrypto

/// The account's members as this device knows them: the records, its open epochs, its duties. It
/// knows no store and no session: its methods return the actions to carry out.
struct Members {
  let keys: DeviceKeys
  private(set) var roster: Roster
  /// Nil while the genesis record is unknown.
  private(set) var carrierKeys: CarrierKeys?
  var keyring = Keyring()
  /// Revoked devices whose sessions are ended and whose chains are withheld.
  private var handledRevoked: Set<DeviceID>
  /// Revoked devices that were sent their revocation since the start of the process.
  private var notified: Set<DeviceID> = []
  private(set) var duties = Duties()
  /// For tests: this device behaves as if nobody had revoked it.
  var ignoresItsRevocation = false

  init(of roster: Roster, keys: DeviceKeys) {
    self.keys = keys
    self.roster = roster
    carrierKeys = roster.genesis.map { CarrierKeys(recovery: $0.recoveryBoxKey) }
    keyring.refresh(from: roster, keys: keys)
    handledRevoked = roster.membership.revoked
  }

  var isRevoked: Bool { !ignoresItsRevocation && roster.isRevoked(keys.id) }

  // MARK: Learning

  struct News {
    /// New or improved, in sending order.
    var records: [Record]
    var mutations: [Mutation]
    /// Newly revoked devices, ascending.
    var revoked: [DeviceID]
  }

  /// Learns records; `isOwn` if this device made them. Nil if nothing is new.
  mutating func learn(_ records: [CheckedRecord], isOwn: Bool) -> News? {
    // Storage keeps the records that make this device a member, even if the roster has no space for
    // them.
    let mine = Set(roster.chain(of: keys.id).map(\.id))
    let (fresh, gone) = roster.update(with: records.filter { !isIgnored($0) })
    guard !fresh.isEmpty else { return nil }
    keyring.refresh(from: roster, keys: keys)
    carrierKeys = carrierKeys ?? roster.genesis.map { CarrierKeys(recovery: $0.recoveryBoxKey) }
    if !isOwn { duties.lacksSpaceForLockboxes = false }
    let revoked = roster.membership.revoked.subtracting(handledRevoked)
    handledRevoked.formUnion(revoked)
    return News(
      records: fresh.sorted(by: Record.isSentBefore),
      mutations: fresh.map { .put(.record($0.id), $0.encoded) }
        + gone.filter { !mine.contains($0) }.map { .remove(.record($0)) },
      revoked: revoked.sorted())
  }

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

  mutating func makeEpochIfNone(_ entropy: inout any Entropy) -> News? {
    guard keyring.current == nil,
      let records = keyring.nextEpoch(for: roster, keys: keys, entropy: &entropy)
    else { return nil }
    return learn(own: records)
  }

  // MARK: Peers

  func device(of peer: SessionPeer) -> DeviceID? {
    roster.device(withTransportKey: peer.transportKey, named: peer.hello.device)
  }

  /// The records to send to a peer.
  enum OnRecords {
    /// For a revoked peer: its revocation, and nothing else.
    case revocation([Record])
    /// For a peer that has not proved to be a member: the proof that this device is one. The rest
    /// follows once the peer is recognised.
    case proof([Record])
    /// For a member.
    case all([Record])
  }

  /// Returns the records for a peer: this device's path first, so that the peer can identify it.
  ///
  /// Under an older epoch, whose key revoked devices have, a peer proves itself first.
  mutating func records(for peer: SessionPeer, isMember: Bool) -> OnRecords {
    let path = roster.chain(of: keys.id)
    if isMember {
      // The path has only its own signatures; whole records follow.
      return .all(
        path + roster.records.sorted(by: Record.isSentBefore).filter { !path.contains($0) })
    }
    if let revoked = revokedDevice(of: peer) { return .revocation(revocation(for: revoked)) }
    return .proof(peer.isMembershipOnly ? [] : path)
  }

  mutating func revocation(for device: DeviceID) -> [Record] {
    notified.insert(device)
    return roster.revocationRecords(of: device)
  }

  private func revokedDevice(of peer: SessionPeer) -> DeviceID? {
    roster.revokedDevice(withTransportKey: peer.transportKey, named: peer.hello.device)
  }

  enum OnStranger {
    /// All records, if they prove that it is a member; from a revoked device, only revocations.
    case learn([CheckedRecord])
    /// No proof yet. Keep `proof`, its certificates, for later, and send it `sends`: revocations of
    /// devices on the peer's path.
    case unproved(proof: [CheckedRecord], learn: [CheckedRecord], sends: [Record])
  }

  /// From a peer that has not proved to be a member, only revocations and the proof count: the
  /// certificates up to its own. With the proof, the other records count too. A proof that ends at
  /// a revoked device is learnt, so that a member revokes the peer.
  func judge(
    _ records: [CheckedRecord], of peer: SessionPeer, after earlier: [CheckedRecord]
  ) -> OnStranger {
    let revocations = records.filter(\.isRevocation)
    if revokedDevice(of: peer) != nil { return .learn(revocations) }
    let proof = earlier + records.filter(\.isProof)
    // A copy: certificates that prove nothing are not kept.
    var tried = roster
    _ = tried.update(with: proof + revocations)
    let (key, name) = (peer.transportKey, peer.hello.device)
    if tried.device(withTransportKey: key, named: name) != nil {
      return .learn(proof + records.filter { !$0.isProof })
    }
    let above = tried.revocationsAbove(transportKey: key, named: name)
    // A device that a revoked one enrolled is revoked too; for that it must be known.
    return .unproved(
      proof: proof, learn: above.isEmpty ? revocations : proof + revocations, sends: above)
  }

  /// The records that count of those that a carrier brought from a device: a member's, or those that
  /// prove it to be one; of others only revocations.
  func counting(_ records: [CheckedRecord], of author: DeviceID) -> [CheckedRecord] {
    var tried = roster
    _ = tried.update(with: records)
    return tried.isMember(author) ? records : records.filter(\.isRevocation)
  }

  /// Returns the epochs for handshakes, the current one first. Older ones are included while a
  /// member may not have moved on (`metUnder`), or a revoked device may still have to learn of its
  /// revocation. None once this device is revoked.
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
      guard let revocation = roster.revocation(of: device), !notified.contains(device) else {
        return false
      }
      let end = revocation.issued.addingReportingOverflow(Limits.revocationNewsMilliseconds)
      return !end.overflow && instant.wallMilliseconds < end.partialValue
    }
    return isBehind ? keyring.newestFirst : [current]
  }

  /// Drops the chains of revoked devices, which are not compared. If there were any, the digest is
  /// dropped: this device's cannot equal it.
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
  /// The duties to the account (`Docs/Protocol/duties.md`). Each member waits a random time first,
  /// so that one does them for all.
  struct Duties {
    /// When to look for duties again, by the monotonic clock.
    fileprivate(set) var dueAt: UInt64?
    /// Limits the epochs that this device makes because of a leak.
    fileprivate var leaks = TokenBucket(
      Limits.epochsBecauseOfLeaks, per: Limits.leakMilliseconds)
    /// Whether the roster has no space for the lockboxes made last; until others' records come.
    fileprivate var lacksSpaceForLockboxes = false
  }

  /// Plans a look after a random wait, if there are duties. `holdsWithheld`: a store may have
  /// entries to carry over.
  mutating func schedule(at now: UInt64, holdsWithheld: Bool, _ entropy: inout any Entropy) {
    guard duties.dueAt == nil, hasDuties(holdsWithheld: holdsWithheld) else { return }
    let least = isPatient ? Limits.epochPatienceMilliseconds : Limits.dutyWaitMilliseconds
    let random = entropy.draw(Digest128.self).bytes.prefix(4).reduce(0) { $0 << 8 | UInt64($1) }
    duties.dueAt = now + least + random % (4 * Limits.dutyWaitMilliseconds)
  }

  /// A device that waits for another's secret waits longer.
  private var isPatient: Bool {
    keyring.current == nil && roster.epochStates().values.contains(where: roster.isUsable)
  }

  private func hasDuties(holdsWithheld: Bool) -> Bool {
    guard roster.isMember(keys.id), roster.genesis != nil else { return false }
    return keyring.current == nil || !roster.orphans.isEmpty || holdsWithheld
      || !duties.lacksSpaceForLockboxes && keyring.isLacked(in: roster)
  }

  enum OnDuty {
    case notYet
    /// The records that were made. Carry over withheld entries now.
    case done([News])
  }

  /// `skipsWait`: at once, unless another's epoch may be opened soon.
  mutating func fulfil(
    at now: Instant, skipsWait: Bool = false, _ entropy: inout any Entropy
  ) -> OnDuty {
    guard let dueAt = duties.dueAt, now.monotonicMilliseconds >= dueAt || skipsWait && !isPatient
    else {
      return .notYet
    }
    duties.dueAt = nil
    guard roster.isMember(keys.id) else { return .notYet }
    var news: [News?] = []
    news.append(learn(own: roster.revokingOrphans(at: now.wallMilliseconds, keys: keys)))
    if mayMakeEpoch(at: now.monotonicMilliseconds) { news.append(makeEpochIfNone(&entropy)) }
    let lockboxes = keyring.lockboxesForMembersWithoutEpochs(
      in: roster, keys: keys, entropy: &entropy)
    if !lockboxes.isEmpty {
      news.append(learn(own: lockboxes))
      duties.lacksSpaceForLockboxes = lockboxes.allSatisfy { roster.record($0.id) == nil }
    }
    return .done(news.compactMap(\.self))
  }

  /// Returns whether another epoch may end a leak. A member that seals each one to a revoked device
  /// would cause epochs without end; after a few, the newest stays in use.
  private mutating func mayMakeEpoch(at now: UInt64) -> Bool {
    guard keyring.isNewestLeaked else { return true }
    guard duties.leaks.spend(at: now) else {
      keyring.goOn(despite: roster.membership.revoked, in: roster)
      return false
    }
    return true
  }
}
