internal import KithCrypto

extension Replica {
  /// What this node says of itself in a handshake.
  public func hello(port: UInt16, at instant: Instant) -> Hello {
    return Hello(
      version: 1, clock: HybridTime(milliseconds: adjusted(instant).wallMilliseconds),
      isSynchronised: isClockSynchronised, process: process, rosterDigest: roster.digest,
      port: port, software: Software.version, device: keys.id)
  }

  mutating func connect(_ id: SessionID, to peer: SessionPeer) {
    guard !isRevoked else { return effects.append(.close(id, .revoked)) }
    guard peer.transportKey != keys.transportPublicKey else { return meetOurselves(id, peer) }
    let offset =
      Int64(clamping: peer.hello.clock.milliseconds) - Int64(clamping: now.wallMilliseconds)
    var session = Session(
      peer: peer, openedAt: now.monotonicMilliseconds, clockOffsetMilliseconds: offset)
    session.device = roster.device(
      withTransportKey: peer.transportKey, named: peer.hello.device)
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
  mutating func makeRoom(
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
  mutating func beginExchange(on id: SessionID) {
    guard let session = sessions[id], let device = session.device else { return }
    lastSeen[device] = now.wallMilliseconds
    heard[device] = HeardOfDevice(
      software: session.peer.hello.software,
      clockOffsetMilliseconds: session.clockOffsetMilliseconds,
      epoch: session.peer.isMembershipOnly ? nil : keyring.current?.id)
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
    // Last: what is sent before need not wait for it to be durable.
    rememberAddress(of: id)
    effects.append(.progress)
  }
}
