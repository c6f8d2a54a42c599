internal import KithCrypto

extension Replica {
  /// What this node says of itself in a handshake.
  public func hello(port: UInt16, at instant: Instant) -> Hello {
    return Hello(
      version: 1, clock: HybridTime(milliseconds: adjusted(instant).wallMilliseconds),
      isSynchronised: isClockSynchronised, process: process, rosterDigest: roster.digest,
      port: port)
  }

  mutating func connect(_ id: SessionID, to peer: SessionPeer) {
    guard peer.transportKey != keys.transportPublicKey else { return meetOurselves(id, peer) }
    let offset =
      Int64(clamping: peer.hello.clock.milliseconds) - Int64(clamping: now.wallMilliseconds)
    var session = Session(
      peer: peer, openedAt: now.monotonicMilliseconds, clockOffsetMilliseconds: offset)
    session.device = roster.device(withTransportKey: peer.transportKey)
    if let device = session.device, !makeRoom(for: id, with: peer, of: device) { return }
    sessions[id] = session
    if peer.hello.rosterDigest != roster.digest { sendRecords(on: id) }
    if session.device != nil { beginExchange(on: id) }
    effects.append(.progress)
  }

  /// We dialled ourselves; or, under another process, a copy of our directory runs elsewhere, and
  /// both go on under new incarnations. Once for each process: it may well come again.
  private mutating func meetOurselves(_ id: SessionID, _ peer: SessionPeer) {
    if peer.hello.process != process, clones.count < Limits.incarnations,
      clones.insert(peer.hello.process).inserted
    {
      meetClone()
    }
    effects.append(.close(id, .ourselves))
  }

  /// Of two sessions with a device one is closed; false where that is the new one.
  private mutating func makeRoom(
    for id: SessionID, with peer: SessionPeer, of device: DeviceID
  ) -> Bool {
    guard let other = sessions.first(where: { $0.value.device == device })?.key else {
      return true
    }
    let staying = prefers(peer, of: device, over: other)
    effects.append(.close(staying ? other : id, .duplicate))
    disconnect(staying ? other : id)
    return staying
  }

  /// Of two connections between the same devices the one dialled by the smaller id stays (design,
  /// section 8). A process that is new to us has left its older connection behind, and of two that
  /// one side dialled the older is the one that broke.
  private func prefers(
    _ peer: SessionPeer, of device: DeviceID, over other: SessionID
  ) -> Bool {
    guard let old = sessions[other]?.peer, old.hello.process == peer.hello.process,
      old.isDialled != peer.isDialled
    else { return true }
    return peer.isDialled == (keys.id < device)
  }

  mutating func disconnect(_ id: SessionID) {
    guard let session = sessions.removeValue(forKey: id) else { return }
    if let device = session.device { lastSeen[device] = now.wallMilliseconds }
    effects.append(.progress)
  }

  // MARK: Messages

  mutating func receive(_ message: InboundMessage, on id: SessionID) {
    guard sessions[id] != nil else { return }
    if let device = sessions[id]?.device { lastSeen[device] = now.wallMilliseconds }
    repeater = message.repeater
    defer { repeater = nil }
    switch message.body {
    case .records(let records): receive(records, on: id)
    case .have(let have): receive(have, on: id)
    case .batch(let part): receive(part, size: message.size, on: id)
    case .addresses(let addresses): learn(addresses, from: id)
    }
  }

  /// Whatever is not membership is for members whose clock agrees with ours.
  func exchanges(_ id: SessionID) -> Bool {
    sessions[id]?.isExchanging == true
  }

  // MARK: Membership

  /// Sends the records that we hold: our own chain first, so that a peer that has never met us
  /// learns who we are before anything else.
  private mutating func sendRecords(on id: SessionID) {
    let chain = roster.chain(of: keys.id)
    let rest =
      sessions[id]?.device == nil
      ? roster.recordsForStranger(device: keys.id) : roster.records
    sessions[id]?.isOwedRecords = rest.count < roster.records.count
    // The chain's records have only its own signatures; whole ones follow.
    send(chain + rest.filter { !chain.contains($0) }, on: id)
  }

  private mutating func send(_ records: [Record], on id: SessionID) {
    let isStranger = sessions[id]?.device == nil
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
      if isStranger {
        let size = Self.sizeInMessage(encoded)
        guard let sent = sessions[id]?.strangerBytesSent, sent + size <= Limits.strangerBytes
        else {
          sessions[id]?.isOwedRecords = true
          continue
        }
        sessions[id]?.strangerBytesSent = sent + size
      }
      message.records.records.append(wire)
      bytes += encoded.count
    }
    flush(into: &effects)
  }

  /// What an encoded record takes inside a message: its bytes, its field's number and length.
  private static func sizeInMessage(_ encoded: [UInt8]) -> Int { encoded.count + 4 }

  /// A stranger's chain comes first, and is no larger than the limit; who is none by then is not
  /// listened to any longer.
  private mutating func receive(_ records: [Record], on id: SessionID) {
    if let session = sessions[id], session.device == nil {
      guard session.strangerBytesTaken < Limits.strangerBytes else {
        effects.append(.close(id, .notMember))
        disconnect(id)
        return
      }
      sessions[id]?.strangerBytesTaken += records.reduce(0) {
        $0 + Self.sizeInMessage($1.encoded)
      }
    }
    learn(records, from: id)
  }

  /// Takes in membership records, and passes on what is new.
  mutating func learn(_ records: [Record], from source: SessionID?) {
    let fresh = roster.learn(all: records)
    if !fresh.isEmpty {
      keyring.refresh(from: roster, keys: keys)
      let roster = roster
      hearsay.table.keep(only: roster.isMember)
      effects.append(.persist(fresh.map { .putRecord($0.id, $0.encoded) }))
      for id in sessions.keys.sorted() where id != source { send(fresh, on: id) }
    }
    recogniseStrangers()
    guard !fresh.isEmpty else { return }
    // What could not be judged before may be now.
    for id in sessions.keys.sorted() where exchanges(id) && id != source { sendHave(on: id) }
    effects.append(.progress)
  }

  private mutating func recogniseStrangers() {
    for id in sessions.keys.sorted() where sessions[id]?.device == nil {
      guard let key = sessions[id]?.peer.transportKey,
        let device = roster.device(withTransportKey: key)
      else { continue }
      guard let peer = sessions[id]?.peer, makeRoom(for: id, with: peer, of: device) else {
        continue
      }
      sessions[id]?.device = device
      if !peer.isMembershipOnly { effects.append(.promote(id)) }
      if sessions[id]?.isOwedRecords == true { sendRecords(on: id) }
      beginExchange(on: id)
    }
  }

  // MARK: Clocks

  private enum ClockVerdict {
    case agrees
    case theirsAdopted
    case differs
  }

  /// Whether clocks are near enough to exchange stores (design, section 6).
  private func judgeClock(of session: Session) -> ClockVerdict {
    let offset = session.clockOffsetMilliseconds
    guard abs(offset) > Limits.clockDifferenceMilliseconds else { return .agrees }
    switch (isClockSynchronised, session.peer.hello.isSynchronised) {
    case (false, true): return .theirsAdopted
    case (true, false): return .agrees  // It adopts ours.
    default: return .differs
    }
  }

  /// Takes over the time of a device whose clock is synchronised, when ours is not.
  private mutating func adoptTime(aheadBy offset: Int64) {
    let wall = Int64(clamping: now.wallMilliseconds) + offset
    now.wallMilliseconds = UInt64(max(0, wall))
    adoptedTime = now
    // Differences from the time that we had say nothing any more.
    for id in sessions.keys { sessions[id]?.clockOffsetMilliseconds -= offset }
  }

  /// Once the host's clock is synchronised itself, it counts again, and not what was adopted: the
  /// sessions are dialled anew, so that both sides judge clocks by it. So are those on which nothing
  /// is exchanged, for the clocks differed.
  mutating func setSynchronised(_ isSynchronised: Bool, at instant: Instant) {
    let isNews = isClockSynchronised != isSynchronised
    isClockSynchronised = isSynchronised
    if isNews {
      for id in sessions.keys.sorted() where sessions[id]?.clocksDiffered == true {
        effects.append(.close(id, .clocksDiffered))
        disconnect(id)
      }
    }
    guard isSynchronised, adoptedTime != nil else { return }
    adoptedTime = nil
    now = instant
    for id in sessions.keys.sorted() {
      effects.append(.close(id, .clockMended))
      disconnect(id)
    }
  }

  /// Not under an older epoch: whoever holds only that one's key is not shown stores. The network
  /// ends such a session soon, and the next is made under the epoch that both have by then.
  private mutating func beginExchange(on id: SessionID) {
    guard let session = sessions[id], let device = session.device else { return }
    lastSeen[device] = now.wallMilliseconds
    guard !session.peer.isMembershipOnly else { return }
    switch judgeClock(of: session) {
    case .agrees: break
    case .theirsAdopted:
      adoptTime(aheadBy: session.clockOffsetMilliseconds)
      effects.append(
        .report(.clocksDiffer(peer: device, milliseconds: session.clockOffsetMilliseconds)))
    case .differs:
      effects.append(
        .report(.clocksDiffer(peer: device, milliseconds: session.clockOffsetMilliseconds)))
      // Only a handshake tells the peer's time: after a while it is asked for again.
      sessions[id]?.clocksDiffered = true
      sessions[id]?.nextHaveAt = now.monotonicMilliseconds + Limits.haveIntervalMilliseconds
      return
    }
    sessions[id]?.isExchanging = true
    sendHave(on: id)
    sendAddresses(on: id)
    beginHearsay()
    // Last: what is sent before need not wait for it to be durable.
    rememberAddress(of: id)
    effects.append(.progress)
  }
}
