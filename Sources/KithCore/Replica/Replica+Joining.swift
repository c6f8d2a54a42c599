internal import KithCrypto

/// How a device becomes a member with everything that its inviter has (`Docs/Protocol.md`,
/// "First sync"). The new device is in nobody's roster but its own until its last word.
extension Replica {
  /// Whether this device joins now: it pulls, and does nothing else.
  var isJoining: Bool { sessions.values.contains(where: \.isInviters) }

  // MARK: The inviter

  /// Publishes the drafts and says what there is; the joiner asks for it.
  mutating func admit(_ joiner: Joiner, on id: SessionID) {
    let certificates = joiner.records.lazy.compactMap { record -> Certificate? in
      if case .certificate(let certificate) = record.kind { certificate } else { nil }
    }
    guard !isRevoked, roster.isMember(keys.id), let certificate = certificates.first else {
      return effects.append(.close(id, .revoked))
    }
    var session = Session(
      peer: joinPeer(certificate, isDialled: false, joiner.address),
      openedAt: now.monotonicMilliseconds, clockOffsetMilliseconds: 0)
    session.joiner = certificate.device
    session.admission = joiner.records
    session.isExchanging = true
    sessions[id] = session
    if Canary.takeInBeforeItExists.isPlanted { learn(joiner.records) }
    flush()
    putRecords(roster.records, on: id)
    sendHave(on: id)
  }

  /// Of a joiner nothing counts but what it asks for, what it covers, and its last word.
  mutating func receive(_ body: InboundMessage.Body, fromJoiner id: SessionID) {
    switch body {
    case .have(let have):
      guard let joiner = sessions[id]?.joiner else { return }
      for theirs in withoutRevoked(have).stores
      where stores[theirs.store] != nil && agreesOnPolicy(theirs, on: id, joiner) {
        note(theirs, isWhole: have.isWhole, on: id)
        if have.number > 0, have.isWhole { answer(theirs, number: have.number, on: id, joiner) }
      }
    case .done: takeIn(id)
    case .records, .batch, .addresses: break
    }
  }

  /// The joiner exists: it is made a member. If this device was revoked meanwhile, the session ended.
  private mutating func takeIn(_ id: SessionID) {
    guard let session = sessions[id] else { return }
    // Ended before the records are learnt, so that nobody takes it for a member's.
    disconnect(id)
    learn(session.admission)
    let isMember = session.joiner.map(roster.isMember) == true
    effects.append(.close(id, isMember ? .joined : .notMember))
  }

  // MARK: The joiner

  /// Takes over the inviter's clock, and asks for everything.
  mutating func join(_ inviter: Inviter, on id: SessionID) {
    guard roster.isMember(keys.id), roster.isMember(inviter.device),
      let certificate = roster.certificate(of: inviter.device)
    else { return effects.append(.close(id, .notMember)) }
    guard timeKeeper.counts(inviter.clock) else {
      return effects.append(.close(id, .clocksDiffer))
    }
    timeKeeper.clock.witness(inviter.clock)
    effects.append(.persist([.setClock(clock.latest)]))
    var session = Session(
      peer: joinPeer(certificate, isDialled: true, inviter.address),
      openedAt: now.monotonicMilliseconds, clockOffsetMilliseconds: 0)
    session.device = certificate.device
    session.isInviters = true
    session.isExchanging = true
    sessions[id] = session
    sendHave(on: id)
  }

  /// Says once that every store that the inviter listed was pulled. What could not be judged is asked
  /// for again by the member that this device is by then.
  mutating func notePulled(on id: SessionID) {
    guard let session = sessions[id], session.isInviters, !session.hasPulledAll,
      let listed = session.listed,
      listed.intersection(stores.keys).subtracting(session.mismatched).isSubset(of: session.pulled)
    else { return }
    sessions[id]?.hasPulledAll = true
    effects.append(.pulledAll(id))
  }

  /// Whether all that the inviter listed was pulled.
  package var hasPulledAll: Bool { sessions.values.contains(where: \.hasPulledAll) }

  /// How far the pull over a join's session has come; nil where there is none.
  ///
  /// - Complexity: O(*s*) in the stores.
  public var joinProgress: (stores: Int, pulledStores: Int, changeSets: Int)? {
    guard let session = sessions.values.first(where: \.isInviters) else { return nil }
    return (
      session.listed?.count ?? 0, session.pulled.count,
      stores.values.reduce(0) { $0 + $1.log.changeSets.count }
    )
  }

  private func joinPeer(
    _ certificate: Certificate, isDialled: Bool, _ address: String
  ) -> SessionPeer {
    SessionPeer(
      transportKey: certificate.transportKey,
      hello: Hello(
        version: 1, clock: clock.latest, isSynchronised: false,
        process: ProcessID(Digest128 { _ in }), rosterDigest: roster.digest, port: 0,
        device: certificate.device),
      isDialled: isDialled, address: address)
  }
}
