public import KithCrypto

extension Replica {
  /// What this node says of itself in a handshake.
  public func hello(port: UInt16, at instant: Instant) -> Hello {
    let told = timeKeeper.told(at: instant)
    return Hello(
      version: 1, clock: told.reading, isSynchronised: told.isSynchronised, process: process,
      rosterDigest: roster.digest,
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
    guard
      let other = sessions.first(where: { $0.value.device == device && !$0.value.isInviters })?.key
    else {
      return true
    }
    let staying = prefers(peer, of: device, over: other)
    effects.append(.close(staying ? other : id, .duplicate))
    disconnect(staying ? other : id)
    return staying
  }

  /// Of two connections between the same devices the one dialled by the smaller id stays
  /// (`Docs/Protocol.md`,
  /// "Sessions"). A process that is new to us has left its older connection behind, and of two that
  /// one side dialled the older is the one that broke.
  private func prefers(
    _ peer: SessionPeer, of device: DeviceID, over other: SessionID
  ) -> Bool {
    guard let old = sessions[other]?.peer, old.hello.process == peer.hello.process,
      old.isDialled != peer.isDialled
    else { return true }
    return peer.isDialled == (keys.id < device)
  }

  /// The member at the other end of a session; nil while the peer has not proved to be one.
  ///
  /// - Complexity: O(1).
  public func device(of session: SessionID) -> DeviceID? { sessions[session]?.device }

  mutating func disconnect(_ id: SessionID) {
    guard let session = sessions.removeValue(forKey: id) else { return }
    if let device = session.device {
      lastSeen[device] = now.wallMilliseconds
      endHearsay(of: device, session.peer.hello)
    }
    effects.append(.progress)
  }

  // MARK: Messages

  mutating func receive(_ message: InboundMessage, on id: SessionID) {
    guard let session = sessions[id] else { return }
    if session.joiner != nil { return receive(message.body, fromJoiner: id) }
    if let device = session.device { lastSeen[device] = now.wallMilliseconds }
    repeater = message.repeater
    defer { repeater = nil }
    switch message.body {
    case .records(let records): receive(records, on: id)
    case .have(let have): receive(have, on: id)
    case .batch(let part): receive(part, size: message.size, on: id)
    case .addresses(let addresses): learn(addresses, from: id)
    case .done: break  // Only a joiner says it.
    }
  }

  /// Whatever is not membership is for members whose clock agrees with ours.
  func exchanges(_ id: SessionID) -> Bool {
    sessions[id]?.isExchanging == true
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
    guard hearHello(from: device, on: id) else {
      // Either may follow a third, or the other one now; its next message says so.
      sessions[id]?.clocksDiffer = true
      waitForClock(on: id)
      return tellTime(on: id)
    }
    exchange(on: id)
  }

  /// Begins to exchange stores with a member.
  mutating func exchange(on id: SessionID) {
    sessions[id]?.clocksDiffer = false
    sessions[id]?.isExchanging = true
    sendHave(on: id)
    sendAddresses(on: id)
    beginHearsay()
    // Last: what is sent before need not wait for it to be durable.
    rememberAddress(of: id)
    effects.append(.progress)
  }
}
