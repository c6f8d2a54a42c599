internal import KithCrypto

/// ``Members`` has the rules (`Docs/Protocol.md`, "Membership").
extension Replica {
  package var isRevoked: Bool { members.isRevoked }

  /// The epochs whose keys sessions may use now, the current one first.
  ///
  /// - Complexity: O(*n*) in the devices.
  package func handshakeEpochs(at instant: Instant) -> [EpochKeys] {
    members.handshakeEpochs(at: instant) { contacts.meetings[$0]?.handshake?.epoch }
  }

  // MARK: Requests of a person

  mutating func rename(_ device: DeviceID, to name: String) {
    do throws(MembershipError) {
      apply(try members.rename(device, to: name, at: now.wallMilliseconds))
    } catch {
      effects.append(.refusedMembership(error))
    }
  }

  // MARK: Learning

  /// Learns records that this device made. `source` need not get them.
  mutating func learn(_ records: [Record], from source: SessionID? = nil) {
    apply(members.learn(own: records), from: source)
  }

  private mutating func learn(_ records: [CheckedRecord], from source: SessionID) {
    apply(members.learn(records, isOwn: false), from: source)
  }

  /// Learns records that came by a carrier.
  mutating func learn(checked records: [CheckedRecord]) {
    apply(members.learn(records, isOwn: false))
  }

  /// Stores and relays new records, ends former members' sessions, and recognises strangers. Asks
  /// peers again, because change sets may be judged now that could not be before.
  mutating func apply(_ news: Members.News?, from source: SessionID? = nil) {
    guard let news else { return recogniseStrangers() }
    effects.append(.persist(news.mutations))
    coverage.setMembers(roster.sortedMembers.map(\.device))
    endSessionsOfFormerMembers(news.revoked)
    let messages = news.records.messages()
    for id in links.keys.sorted() where id != source && links[id]?.mayBeSentRecords() == true {
      effects += messages.map { .send(id, $0) }
    }
    if isRevoked { for id in links.keys.sorted() { end(id, .revoked) } }
    recogniseStrangers()
    scheduleDuties()
    leaveBelowIfAlone()
    sendHaves(except: source)
    effects.append(.progress)
  }

  private mutating func recogniseStrangers() {
    for id in links.keys.sorted() {
      guard let link = links[id], link.isStranger, let device = members.device(of: link.peer),
        resolveDuplicate(for: id, with: link.peer, of: device)
      else { continue }
      let lacksRecords = links[id]?.recognise(device) == true
      if !link.peer.isMembershipOnly { effects.append(.promote(id)) }
      if lacksRecords { sendRecords(on: id) }
      beginExchange(on: id)
    }
  }

  // MARK: Sending and receiving

  mutating func sendRecords(on id: SessionID) {
    guard let link = links[id] else { return }
    switch members.records(for: link.peer, isMember: link.device != nil) {
    case .revocation(let records), .all(let records): send(records, on: id)
    case .proof(let records):
      _ = links[id]?.mayBeSentRecords()
      send(records, on: id)
    }
  }

  mutating func send(_ records: [Record], on id: SessionID) {
    effects += records.messages().map { .send(id, $0) }
  }

  mutating func receive(_ records: [CheckedRecord], on id: SessionID) {
    switch links[id]?.receive(records) {
    case .member: learn(records, from: id)
    case .stranger(let earlier):
      guard let peer = links[id]?.peer else { return }
      switch members.judge(records, of: peer, after: earlier) {
      case .learn(let records): learn(records, from: id)
      case .unproved(let proof, let records, let above):
        links[id]?.setProof(proof)
        learn(records, from: id)
        send(above, on: id)
      }
    case .tooMuch: end(id, .notMember)
    case nil: break
    }
  }

  // MARK: Duties

  mutating func scheduleDuties() {
    members.schedule(
      at: now.monotonicMilliseconds, holdsWithheld: holdsWithheld, &entropy)
  }

  mutating func fulfilDutiesIfDue() { fulfilDuties(skipsWait: false) }

  /// `skipsWait`: without the random wait, because this device is alone.
  mutating func fulfilDuties(skipsWait: Bool) {
    guard !isJoining, case .done(let all) = members.fulfil(at: now, skipsWait: skipsWait, &entropy)
    else {
      return
    }
    for news in all { apply(news) }
    carryOverFromRevoked()
    scheduleDuties()
  }
}
