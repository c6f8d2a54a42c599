internal import KithCore
internal import KithCrypto
internal import KithNetwork

package struct OpenInvitation: Codable, Sendable, Hashable {
  /// The short code for people, such as `4071-3352`; nil if only the token is accepted.
  package var code: String?
  /// One long line for scripts, with the invitation's addresses.
  package var token: String
  /// The addresses at which it listens, `host:port`, best first.
  package var addresses: [String]
}

extension Node {
  struct InvitationOptions: Sendable {
    /// Whether a short code is accepted too, not only the token.
    var hasCode = false
    /// The hosts in the token; empty: this host's own addresses.
    var addresses: [String] = []
    /// 0: any; with a code, 4115 if that is free.
    var port: UInt16 = 0
    /// The UDP port at which a code is announced, or nil: nowhere. It is announced on the LAN, or on
    /// this host alone if the node listens on loopback only.
    var announcementPort: UInt16? = NetworkLimits.defaultPairingPort
  }

  /// Invites one device by a token or a short code; see ``NodeAccess``. `onEvent` gets the
  /// invitation, then wrong codes and the candidate, and returns whether to accept that. It is
  /// cancelled if the candidate goes.
  ///
  /// An invitation lives in memory only, allows 3 tries and 10 minutes, and accepts one device.
  ///
  /// - Throws: ``KithError`` with `pairingCode` (``KithError/triesLeft`` is 0 if wrong codes ended
  ///   it), `declined`, `network`, `cancelled`, `closed` or a storage code.
  func invite(
    _ options: InvitationOptions, onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws(KithError) -> PairingDevice {
    let invited = await untilFinished(engine.progress) {
      await Result(awaiting: { try await self.runInvitation(options, onEvent) })
    }
    do {
      if let device = try invited?.get() { return device }
    } catch {
      guard engine.progress.isFinished else { throw KithError(pairing: error) }
    }
    throw .closedNode
  }

  private func runInvitation(
    _ options: InvitationOptions, _ onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws -> PairingDevice {
    var entropy = SystemRandom()
    let code = options.hasCode ? PairingCode(random: &entropy) : nil
    let secret = InvitationSecret(random: &entropy)
    let (wrongCodes, continuation) = AsyncStream.makeStream(
      of: Int.self, bufferingPolicy: .bufferingNewest(NetworkLimits.pairingTries))
    let (listener, bound) = try await listen(options, code, secret) { continuation.yield($0) }
    let port = bound.first?.port ?? 0
    let announcer = code == nil ? nil : options.announcementPort.map { self.announcer(at: $0) }
    do {
      let hosts =
        options.addresses.isEmpty
        ? LocalAddresses.hosts(listeningOn: configuration.hosts) : options.addresses
      let token = try InvitationToken(secret: secret, port: port, addresses: hosts)
      _ = await onEvent(
        .invitation(
          OpenInvitation(
            code: code?.text, token: token.text,
            addresses: hosts.compactMap {
              try? PeerAddress(host: $0, port: port).description
            })))
      async let telling: Void = {
        for await left in wrongCodes { _ = await onEvent(.wrongCode(triesLeft: left)) }
      }()
      announcer?.start(InvitationAnnouncement(id: entropy.draw(), port: port))
      let result = await Result(awaiting: { try await admit(listener.accept(), onEvent) })
      await announcer?.stop()
      await listener.close()
      continuation.finish()
      await telling
      return try result.get()
    } catch {
      await announcer?.stop()
      await listener.close()
      throw error
    }
  }

  /// Listens; with a code, at the usual port if that is free.
  private func listen(
    _ options: InvitationOptions, _ code: PairingCode?, _ secret: borrowing InvitationSecret,
    onWrongProof: @escaping @Sendable (Int) -> Void
  ) async throws -> (PairingListener, [PeerAddress]) {
    let device = self.device
    let name = engine.read { $0.roster.name(of: device) } ?? "device"
    let introduction = Invitation(account: account, device: device, name: name).encoded()
    let draft = try InvitationToken(secret: secret.copy(), port: 1, addresses: [])
    let token = SharedPresharedKey(draft.presharedKey())
    func listen(at port: UInt16) async throws -> (PairingListener, [PeerAddress]) {
      var configuration = PairingConfiguration()
      configuration.hosts = self.configuration.hosts
      configuration.port = port
      let listener = PairingListener(
        keys: engine.keys, token: token, code: code, invitation: introduction,
        configuration: configuration, onWrongProof: onWrongProof)
      return (listener, try await listener.bind())
    }
    guard code != nil, options.port == 0 else { return try await listen(at: options.port) }
    do {
      return try await listen(at: NetworkLimits.defaultPairingPort)
    } catch let failure as NetworkFailure where failure.reason == .portTaken {
      configuration.logger.info(
        "the usual port of invitations is taken, another is used",
        metadata: ["port": "\(failure.port)"])
      return try await listen(at: 0)
    }
  }

  private func announcer(at port: UInt16) -> InvitationAnnouncer {
    InvitationAnnouncer(
      .invitations(
        port: port, isLoopbackOnly: configuration.hosts.allSatisfy(LocalAddresses.isLoopback),
        logger: configuration.logger))
  }

  private func admit(
    _ channel: PairingChannel, _ onEvent: @escaping @Sendable (NodeEvent) async -> Bool
  ) async throws -> PairingDevice {
    defer { channel.close() }
    guard let request = JoinRequestMessage(decoding: channel.remotePayload) else {
      throw JoinError.notACertificate
    }
    // No answer: this is not the device that the certificate names.
    guard case .certificate(let claimed) = request.certificate.kind,
      claimed.transportKey == channel.remoteStatic
    else { throw JoinError.keysInUse }
    let roster = engine.read { $0.roster }
    let certificate: Certificate
    do throws(JoinError) {
      certificate = try JoinRequest.verify(request.certificate, roster: roster)
    } catch {
      // Without this, the other person would see only a closed connection.
      try? channel.send(JoinReply(isAccepted: false).encoded())
      await channel.awaitEnd()
      throw error
    }
    let candidate = PairingDevice(
      id: certificate.device, name: certificate.name,
      fingerprint: Fingerprint(of: certificate.device).description,
      address: channel.remoteAddress)
    let hasEnded = Signal()
    channel.onEnd(hasEnded.finish)
    let isWanted = await untilFinished(hasEnded) { await onEvent(.candidate(candidate)) }
    // A question that was cancelled is no refusal: the other person sees that the exchange ended.
    try Task.checkCancellation()
    guard isWanted == true else {
      // If the candidate has gone, this throws why.
      try channel.send(JoinReply(isAccepted: false).encoded())
      await channel.awaitEnd()
      throw KithError(.declined, "The device was not taken in.", device: certificate.device)
    }
    // Only a revocation, which leaves a trace, removes a member. So the other person must have
    // compared the fingerprints and confirmed, too.
    guard JoinConfirm(decoding: try await channel.receive()) != nil else {
      throw PairingError.closed
    }
    let (added, records) = try admission(of: candidate.id, request.certificate)
    try channel.send(
      JoinReply(
        isAccepted: true, records: records, addresses: addresses(forJoinerAt: candidate.address),
        clock: engine.read { $0.hybridClock }
      ).encoded())
    channel.allowSession()
    if try await hand(over: channel, Joiner(records: added, address: candidate.address)) {
      return candidate
    }
    // The session may have ended because the invitation was cancelled.
    try Task.checkCancellation()
    throw KithError(
      .network,
      "\(candidate.name) did not say that it has everything, and was not taken in. If "
        + "\"kith status\" shows the account there, it has, and brings the proof along when the "
        + "two meet; otherwise invite it again.",
      device: candidate.id)
  }

  /// Sends a confirmed device all data. The core makes it a member when it reports that it has
  /// everything, so a failed joiner leaves no member without a device.
  private func hand(over channel: PairingChannel, _ joiner: Joiner) async throws -> Bool {
    guard let first = try? await channel.receive() else { return false }
    let session = engine.state.withLock { $0.transports.pairings }.add(channel, engine)
    session.begin(.admit(session.id, joiner), first: first)
    return try await withTaskCancellationHandler {
      for await event in session.events {
        if case .ended(let reason) = event { return reason == .joined }
      }
      throw CancellationError()
    } onCancel: {
      channel.close()
    }
  }

  /// The records that make a confirmed device a member, and all that it needs. Nothing is stored
  /// yet.
  private func admission(
    of joiner: DeviceID, _ request: Record
  ) throws -> (added: [Record], records: [Record]) {
    var roster = engine.read { $0.roster }
    let keyring = engine.read { $0.keyring }
    var entropy = SystemRandom()
    let added = try JoinRequest.accept(
      request, roster: roster, keyring: keyring, keys: engine.keys, entropy: &entropy)
    _ = roster.learn(all: added)
    let all = roster.records
    // The first session exchanges the rest.
    let size = all.reduce(0) { $0 + $1.encoded.count + 8 }
    let isSmall = size < NetworkLimits.pairingMessageBytes * 3 / 4
    return (added, isSmall ? all : roster.recordsForJoiner(joiner))
  }

  private func addresses(forJoinerAt address: String) -> [DeviceID: [String]] {
    let port = listening.withLock { $0.first?.port } ?? configuration.port
    let own =
      port == 0
      ? []
      : LocalAddresses.hosts(listeningOn: configuration.hosts)
        .compactMap { try? PeerAddress(host: $0, port: port).description }
    return engine.read { $0.addressesForJoiner(at: address, own: own) }
  }
}
