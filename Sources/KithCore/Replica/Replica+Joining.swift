internal import KithCrypto

/// A device becomes a member with all of its inviter's data (`Docs/Protocol.md`, "First sync").
/// Until its last message, only its own roster has it.
extension Replica {
  /// A joining device only pulls.
  var isJoining: Bool { links.values.contains(where: \.isInviter) }

  // MARK: The inviter

  /// Publishes the drafts, and tells the joiner records and coverage.
  mutating func admit(_ joiner: Joiner, on id: SessionID) {
    let certificates = joiner.records.lazy.compactMap { record -> Certificate? in
      if case .certificate(let certificate) = record.kind { certificate } else { nil }
    }
    guard !isRevoked, roster.isMember(keys.id), let certificate = certificates.first else {
      return end(id, .revoked)
    }
    links[id] = Link(
      .joiner(certificate.device, records: joiner.records),
      peer: joinPeer(certificate, isDialled: false, joiner.address), at: now)
    beginCoverage(on: id, with: certificate.device, isMember: false)
    flush()
    for message in roster.records.sorted(by: Record.isSentBefore).messages() {
      effects.append(.send(id, message))
    }
    sendHave(on: id)
  }

  /// From a joiner, only `Have`s and its last message count.
  mutating func receive(_ body: InboundMessage.Body, fromJoiner id: SessionID) {
    guard case .joiner(let joiner, let records)? = links[id]?.state else { return }
    switch body {
    case .have(let have):
      for theirs in members.withoutRevoked(have).stores
      where stores[theirs.store] != nil && agreesOnPolicy(theirs, on: id, joiner) {
        note(theirs, isWhole: have.isWhole, on: id)
        if have.number > 0, have.isWhole { answer(theirs, number: have.number, on: id, joiner) }
      }
    case .done:
      // The joiner exists. It becomes a member, unless this device was revoked meanwhile.
      learn(records, from: id)
      if links[id] != nil { end(id, roster.isMember(joiner) ? .joined : .notMember) }
    case .records, .batch, .addresses: break
    }
  }

  // MARK: The joiner

  mutating func join(_ inviter: Inviter, on id: SessionID) {
    guard roster.isMember(keys.id), roster.isMember(inviter.device),
      let certificate = roster.certificate(of: inviter.device)
    else { return end(id, .notMember) }
    guard timeKeeper.counts(inviter.clock) else { return end(id, .clocksDiffer) }
    timeKeeper.clock.witness(inviter.clock)
    effects.append(.persist([.put(.clock, clock.latest.row)]))
    links[id] = Link(
      .inviter(certificate.device, Link.Pull()),
      peer: joinPeer(certificate, isDialled: true, inviter.address), at: now)
    beginCoverage(on: id, with: certificate.device, isMember: false)
    sendHave(on: id)
  }

  mutating func notePulled(on id: SessionID) {
    let stores = stores
    if links[id]?.endPull(keeping: { stores[$0] != nil }) == true {
      effects.append(.pulledAll(id))
    }
  }

  /// Whether every store that the inviter listed was pulled.
  package var hasPulledAll: Bool { links.values.contains { $0.pull?.isDone == true } }

  /// Nil if this device is not joining. `partialStores`: those of which more is there than a device
  /// takes of one author.
  ///
  /// - Complexity: O(*s*) in the stores.
  package var joinProgress: (stores: Int, pulledStores: Int, partialStores: Int, changeSets: Int)? {
    guard let link = links.values.first(where: \.isInviter) else { return nil }
    return (
      link.pull?.listed?.count ?? 0, link.pulledStores,
      stores.values.count { !$0.reportedOverLimit.isEmpty },
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
