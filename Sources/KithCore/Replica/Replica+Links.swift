internal import KithCrypto

/// ``Link`` has the rules.
extension Replica {
  package func hello(port: UInt16, at instant: Instant) -> Hello {
    let ours = timeKeeper.clockReading(at: instant)
    return Hello(
      version: 1, clock: ours.reading, isSynchronised: ours.isSynchronised, process: process,
      rosterDigest: roster.digest,
      port: port, software: Software.version, device: keys.id)
  }

  // MARK: Beginning

  mutating func connect(_ id: SessionID, to peer: SessionPeer) {
    guard !isRevoked else { return end(id, .revoked) }
    guard peer.transportKey != keys.transportPublicKey else {
      return handleSelfConnection(id, peer)
    }
    var link = Link(to: peer, at: now)
    let device = members.device(of: peer)
    if let device {
      guard resolveDuplicate(for: id, with: peer, of: device) else { return }
      _ = link.recognise(device)
    }
    links[id] = link
    if peer.hello.rosterDigest != roster.digest { sendRecords(on: id) }
    if device != nil { beginExchange(on: id) }
    effects.append(.progress)
  }

  /// This device dialled itself. If a copy of the directory runs elsewhere, both take new
  /// incarnations.
  private mutating func handleSelfConnection(_ id: SessionID, _ peer: SessionPeer) {
    if incarnations.noteClone(peer.hello.process, as: process) { handleClone() }
    end(id, .ourselves)
  }

  /// Closes one of two sessions with a device. Returns false if it closed the new one.
  mutating func resolveDuplicate(
    for id: SessionID, with peer: SessionPeer, of device: DeviceID
  ) -> Bool {
    guard
      let (other, old) = links.first(where: { $0.value.device == device && !$0.value.isInviter })
    else { return true }
    let isPreferred = peer.isPreferred(to: old.peer, dialledBySmaller: keys.id < device)
    end(isPreferred ? other : id, .duplicate)
    return isPreferred
  }

  /// Nil until the peer has proved to be a member.
  ///
  /// - Complexity: O(1).
  package func device(of session: SessionID) -> DeviceID? { links[session]?.device }

  package var sessions: [SessionID] { links.keys.sorted() }

  /// Compares the handshake's clocks. Under an older epoch nothing is exchanged, so a device with
  /// only that epoch's key sees no stores. The network soon ends such a session; the next uses the
  /// epoch that both have by then.
  mutating func beginExchange(on id: SessionID) {
    guard let link = links[id], let device = link.device else { return }
    contacts.note(
      device,
      Contacts.Handshake(
        software: link.peer.hello.software,
        clockOffsetMilliseconds: link.clockOffsetMilliseconds,
        epoch: link.peer.isMembershipOnly ? nil : keyring.current?.id),
      at: now.wallMilliseconds)
    guard link.getsClock else { return }
    let agrees = noteHelloClock(from: device, on: id)
    switch links[id]?.judge(clocksAgree: agrees) {
    case .begin: exchange(on: id)
    // Either device may follow another clock now; its next message tells.
    case .differ: resendClock(on: id)
    case .goOn, .end, nil: break
    }
  }

  mutating func exchange(on id: SessionID) {
    if let device = links[id]?.device { beginCoverage(on: id, with: device, isMember: true) }
    sendHave(on: id)
    sendAddresses(on: id)
    // Last, so that the messages before it do not wait for a commit.
    rememberAddress(of: id)
    effects.append(.progress)
  }

  // MARK: Receiving

  mutating func receive(_ message: InboundMessage, on id: SessionID) {
    guard let link = links[id] else { return }
    if link.joiner != nil { return receive(message.body, fromJoiner: id) }
    if let device = link.device { contacts.note(device, at: now.wallMilliseconds) }
    repeater = message.repeater
    defer { repeater = nil }
    switch message.body {
    case .records(let records): receive(records, on: id)
    case .have(let have): receive(have, on: id)
    case .batch(let part): receive(part, size: message.size, on: id)
    case .addresses(let addresses): mergeAddresses(addresses, from: id)
    case .done: break  // Only a joiner says it.
    }
  }

  // MARK: Ending

  mutating func end(_ id: SessionID, _ reason: CloseReason) {
    effects.append(.close(id, reason))
    disconnect(id)
  }

  mutating func disconnect(_ id: SessionID) {
    guard let link = links.removeValue(forKey: id) else { return }
    if let device = link.device { contacts.note(device, at: now.wallMilliseconds) }
    coverage.end(id)
    planCoverage()
    // A node that stops ends its sessions first, and loses no address.
    contacts.hurry()
    effects.append(.progress)
  }

  // MARK: Time

  mutating func passTimeOnLinks() {
    for id in links.keys.sorted() {
      switch links[id]?.due(at: now.monotonicMilliseconds) {
      case .end: end(id, .aged)
      case .sendClock: resendClock(on: id)
      case .ask: sendHave(on: id)
      case .nothing, nil: break
      }
    }
  }

  /// Sends the clock now and schedules sending it again, because the clocks differ.
  private mutating func resendClock(on id: SessionID) {
    let time = now.monotonicMilliseconds
    links[id]?.noteClockSent(at: time)
    sendClock(on: id)
  }
}
