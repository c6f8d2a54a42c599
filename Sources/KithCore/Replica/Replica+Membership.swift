internal import KithCrypto

/// Records: learning them, and what members owe each other because of them (`Docs/Protocol.md`,
/// "Membership").
extension Replica {
  /// Whether this device was thrown out.
  var isRevoked: Bool { !ignoresItsRevocation && roster.isRevoked(keys.id) }

  // MARK: What a person asks for

  mutating func rename(_ device: DeviceID, to name: String) {
    do throws(MembershipError) {
      let record = try roster.renaming(device, to: name, at: now.wallMilliseconds, keys: keys)
      learn([record])
      guard roster.record(record.id) != nil else { throw .tooManyRecords }
    } catch {
      effects.append(.refusedMembership(error))
    }
  }

  /// Everything at once, so that nothing is left to do once it is durable: the revocations, a new
  /// epoch, and the device's entries under this one's name.
  mutating func revoke(_ device: DeviceID, keeping staying: Set<DeviceID>) {
    do throws(MembershipError) {
      learn(
        try roster.revoking(device, keeping: staying, at: now.wallMilliseconds, keys: keys))
      makeEpochIfNone()
      inheritFromRevoked()
    } catch {
      effects.append(.refusedMembership(error))
    }
  }

  // MARK: Learning

  /// Takes in records of our own making.
  mutating func learn(_ records: [Record]) {
    learn(records.map { CheckedRecord($0, account: account) }, from: nil)
  }

  /// Takes in membership records, and passes on what is new.
  mutating func learn(_ records: [CheckedRecord], from source: SessionID?) {
    // What makes this device a member stays in storage, also where it has no room any more.
    let mine = Set(roster.chain(of: keys.id).map(\.id))
    let (fresh, gone) = roster.take(all: records.filter { !isIgnored($0) })
    if !fresh.isEmpty {
      keyring.refresh(from: roster, keys: keys)
      effects.append(
        .persist(
          fresh.map { .putRecord($0.id, $0.encoded) }
            + gone.filter { !mine.contains($0) }.map { .removeRecord($0) }))
      partFromFormerMembers()
      let news = fresh.sorted(by: Record.isSentBefore)
      for id in sessions.keys.sorted() where id != source {
        if sessions[id]?.isStranger == true {
          sessions[id]?.isOwedRecords = true
        } else {
          put(news, on: id)
        }
      }
      if isRevoked { closeAll() }
    }
    recogniseStrangers()
    guard !fresh.isEmpty else { return }
    if source != nil { duties.hasNoRoomForLockboxes = false }
    scheduleDuties()
    // What could not be judged before may be now.
    for id in sessions.keys.sorted() where exchanges(id) && id != source { sendHave(on: id) }
    effects.append(.progress)
  }

  private func isIgnored(_ checked: CheckedRecord) -> Bool {
    guard ignoresItsRevocation, case .revocation(let revocation) = checked.record.kind else {
      return false
    }
    return revocation.device == keys.id
  }

  /// Ends the sessions of devices that are no members any more, and forgets what only members have. A
  /// revoked one is sent its revocation before, and nothing else.
  private mutating func partFromFormerMembers() {
    for id in sessions.keys.sorted() {
      if let joiner = sessions[id]?.joiner, roster.isRevoked(joiner) {
        effects.append(.close(id, .revoked))
        disconnect(id)
        continue
      }
      guard let device = sessions[id]?.device, !roster.isMember(device) else { continue }
      if roster.isRevoked(device) { sendRevocation(of: device, on: id) }
      effects.append(.close(id, .revoked))
      disconnect(id)
    }
    let revoked = roster.membership.revoked.subtracting(duties.revoked)
    guard !revoked.isEmpty else { return }
    duties.revoked.formUnion(revoked)
    for device in revoked.sorted() {
      effects.append(.report(.revoked(device, by: roster.revocation(of: device)?.by ?? [])))
    }
    guard !isRevoked else { return }
    forget(revoked.subtracting([keys.id]))
  }

  private mutating func closeAll() {
    for id in sessions.keys.sorted() {
      effects.append(.close(id, .revoked))
      disconnect(id)
    }
  }

  // MARK: Sending

  /// Sends the records that we hold: our own chain first, so that a peer that has never met us
  /// learns who we are before anything else.
  ///
  /// A peer that has not proved to be a member is sent no more than what proves us to be one, and
  /// under an older epoch, whose key revoked devices have, not even that: it proves itself first. A
  /// revoked device is sent its revocation alone.
  mutating func sendRecords(on id: SessionID) {
    guard let session = sessions[id] else { return }
    if let revoked = revokedPeer(of: session) {
      sendRevocation(of: revoked, on: id)
      return
    }
    let chain = roster.chain(of: keys.id)
    guard session.device != nil else {
      sessions[id]?.isOwedRecords = true
      if !session.peer.isMembershipOnly { put(chain, on: id) }
      return
    }
    sessions[id]?.isOwedRecords = false
    // The chain's records have only its own signatures; whole ones follow.
    let rest = roster.records.sorted(by: Record.isSentBefore)
    put(chain + rest.filter { !chain.contains($0) }, on: id)
  }

  /// Sends the records to a member that cannot judge something that we can: it lacks some. They went
  /// out when the session began, but it may have had no room for one then.
  mutating func sendRecordsAgain(on id: SessionID) {
    guard let times = sessions[id]?.recordsSentAgain, times < Limits.recordsSentAgain else {
      return
    }
    sessions[id]?.recordsSentAgain = times + 1
    sendRecords(on: id)
  }

  /// The revoked device at the other end of a session, if that is one.
  func revokedPeer(of session: Session) -> DeviceID? {
    session.device == nil
      ? roster.revokedDevice(
        withTransportKey: session.peer.transportKey, named: session.peer.hello.device) : nil
  }

  private mutating func sendRevocation(of device: DeviceID, on id: SessionID) {
    duties.told.insert(device)
    put(roster.revocationRecords(of: device), on: id)
  }

  /// Sends records, what others rest on first.
  mutating func putRecords(_ records: [Record], on id: SessionID) {
    put(records.sorted(by: Record.isSentBefore), on: id)
  }

  private mutating func put(_ records: [Record], on id: SessionID) {
    var message = WireMessage()
    var bytes = 0
    func flush(into effects: inout [Effect]) {
      guard bytes > 0 else { return }
      effects.append(.send(id, message.encodedBytes()))
      message = WireMessage()
      bytes = 0
    }
    for record in records {
      let encoded = record.encoded
      if bytes + encoded.count > Limits.recordsMessageBytes { flush(into: &effects) }
      guard let wire = try? WireRecord(serializedBytes: encoded) else { continue }
      message.records.records.append(wire)
      bytes += encoded.count
    }
    flush(into: &effects)
  }

  /// What an encoded record takes inside a message: its bytes, its field's number and length.
  private static func sizeInMessage(_ encoded: [UInt8]) -> Int { encoded.count + 4 }

  // MARK: Receiving

  mutating func receive(_ records: [CheckedRecord], on id: SessionID) {
    guard let session = sessions[id] else { return }
    if session.device == nil {
      receive(records, fromStranger: id, session)
    } else {
      learn(records, from: id)
    }
  }

  /// Of a peer that has not proved to be a member nothing counts but revocations and the proof: the
  /// certificates up to its own. With the proof counts what came together with it. A proof that ends
  /// at a revoked device is kept too, so that a member revokes the peer.
  ///
  /// A chain comes first, and is no larger than the limit; a peer that is no member by then is not
  /// listened to any longer.
  private mutating func receive(
    _ records: [CheckedRecord], fromStranger id: SessionID, _ session: Session
  ) {
    guard session.strangerBytesTaken < Limits.strangerBytes else {
      effects.append(.close(id, .notMember))
      disconnect(id)
      return
    }
    sessions[id]?.strangerBytesTaken += records.reduce(Limits.recordsMessageCost) {
      $0 + Self.sizeInMessage($1.record.encoded)
    }
    let revocations = records.filter(\.isRevocation)
    if revokedPeer(of: session) != nil { return learn(revocations, from: id) }
    let proof = session.proof + records.filter(\.isProof)
    // Tried on a copy: certificates that prove nothing are not kept.
    var tried = roster
    _ = tried.take(all: proof + revocations)
    let (key, name) = (session.peer.transportKey, session.peer.hello.device)
    if tried.device(withTransportKey: key, named: name) != nil {
      return learn(proof + records.filter { !$0.isProof }, from: id)
    }
    sessions[id]?.proof = proof
    let above = tried.revocationsAbove(transportKey: key, named: name)
    // A device that a revoked one enrolled is revoked too: for that it has to be known.
    learn(above.isEmpty ? revocations : proof + revocations, from: id)
    put(above, on: id)
  }

  private mutating func recogniseStrangers() {
    for id in sessions.keys.sorted() where sessions[id]?.isStranger == true {
      guard let peer = sessions[id]?.peer,
        let device = roster.device(withTransportKey: peer.transportKey, named: peer.hello.device),
        makeRoom(for: id, with: peer, of: device)
      else { continue }
      sessions[id]?.device = device
      if !peer.isMembershipOnly { effects.append(.promote(id)) }
      if sessions[id]?.isOwedRecords == true { sendRecords(on: id) }
      beginExchange(on: id)
    }
  }
}

extension Record {
  /// What others rest on is sent first: who is a member, then epochs, then the rest.
  fileprivate static func isSentBefore(_ left: Record, _ right: Record) -> Bool {
    (left.kind.rank, left.id) < (right.kind.rank, right.id)
  }
}

extension Record.Kind {
  /// The place of its kind in the order in which records are sent.
  var rank: Int {
    switch self {
    case .genesis: 0
    case .certificate: 1
    case .revocation: 2
    case .epoch: 3
    case .lockbox: 4
    case .rename: 5
    case .unknown: 6
    }
  }
}

extension CheckedRecord {
  fileprivate var isRevocation: Bool {
    if case .revocation = record.kind { true } else { false }
  }

  /// Whether it may be a step of a device's path.
  fileprivate var isProof: Bool {
    switch record.kind {
    case .genesis, .certificate: true
    default: false
    }
  }
}
