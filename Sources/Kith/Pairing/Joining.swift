internal import KithCore
internal import KithCrypto
internal import KithNetwork
internal import KithStorage
internal import Logging

struct Joining: Sendable {
  struct Dialling: Sendable {
    let dialler: PairingDialler
    let answer: @Sendable ([UInt8], TransportPublicKey) throws -> [UInt8]

    init(_ keys: DeviceKeys, name: String) {
      dialler = PairingDialler(keys: keys)
      answer = { payload, _ in
        guard let introduction = Invitation(decoding: payload) else { throw PairingError.closed }
        let certificate = try JoinRequest.make(
          account: introduction.account, keys: keys, name: name,
          issued: SystemClock.now().wallMilliseconds)
        return JoinRequestMessage(certificate: certificate).encoded()
      }
    }
  }

  let directory: String
  let name: String
  let passphrase: Passphrase?
  let options: Node.JoinOptions
  /// See ``Node/join(directory:name:code:address:passphrase:options:onProgress:made:confirm:)``.
  let progress: @Sendable (JoinProgress) -> Void
  let made: @Sendable (AccountSummary) async throws(KithError) -> Void
  let confirm: @Sendable (PairingDevice, String) async -> Bool

  /// Pulls all data of the account and makes the device. If it fails before the device exists, it
  /// leaves nothing behind.
  func run(
    connect: @Sendable (Dialling) async throws -> PairingChannel
  ) async throws(KithError) -> AccountSummary {
    // Before a person is asked.
    let reserved = try DeviceStorage.reserve(directory)
    do {
      return try await join(reserved, connect)
    } catch {
      throw KithError(pairing: error)
    }
  }

  private func join(
    _ reserved: DirectoryLock, _ connect: @Sendable (Dialling) async throws -> PairingChannel
  ) async throws -> AccountSummary {
    var entropy = SystemRandom()
    let secrets = DeviceSecrets(random: &entropy)
    let keys = secrets.makeKeys()
    let channel = try await connect(Dialling(keys, name: name))
    defer { channel.close() }
    guard let introduction = Invitation(decoding: channel.remotePayload) else {
      throw PairingError.closed
    }
    let inviting = PairingDevice(
      id: introduction.device, name: introduction.name,
      fingerprint: Fingerprint(of: introduction.device).description, address: channel.remoteAddress)
    guard await confirm(inviting, Fingerprint(of: keys.id).description) else {
      // A question that was cancelled is no refusal.
      try Task.checkCancellation()
      throw KithError(
        .declined, "The device did not join.", device: introduction.device)
    }
    // Fails if the inviter has declined; its reply says so.
    try? channel.send(JoinConfirm().encoded())
    guard let reply = JoinReply(decoding: try await channel.receive()) else {
      throw PairingError.closed
    }
    let (roster, _) = try JoinRequest.check(reply, invitation: introduction, keys: keys)
    guard roster.certificate(of: introduction.device)?.transportKey == channel.remoteStatic else {
      throw JoinError.inviterNotMember
    }
    var initial: [Mutation] = roster.records.map { .put(.record($0.id), $0.encoded) }
    for (device, texts) in reply.addresses.sorted(by: { $0.key < $1.key }) {
      initial.append(.addresses(device, Array(texts.prefix(LocalAddresses.limit))))
    }
    let prepared = try await DeviceStorage.prepareApart(reserved, secrets, initial, passphrase)
    let inviter = Inviter(
      device: introduction.device, clock: reply.clock, address: channel.remoteAddress)
    let partialStores: Int
    do {
      partialStores = try await pull(
        from: inviter, over: channel, roster.account, prepared.openStorage(), keys)
    } catch {
      try? prepared.discard()
      throw error
    }
    try DeviceStorage.install(prepared)
    let summary = AccountSummary(account: roster.account, device: keys.id, name: name)
    try await made(summary)
    // If this is lost, the device shows its certificate when it meets a member.
    channel.sendSession(JoinDone().encodedMessage())
    // The inviter first commits the new member, on a disk that may be slow.
    guard await channel.awaitEnd(within: options.timeout) || Task.isCancelled else {
      throw Self.unconfirmed(by: introduction, partialStores: partialStores)
    }
    return summary
  }

  /// Pulls with an engine like a node's, into a database that only this process knows. Returns the
  /// number of stores that came only in part.
  private func pull(
    from inviter: Inviter, over channel: PairingChannel, _ account: AccountID,
    _ storage: SQLiteStorage, _ keys: DeviceKeys
  ) async throws -> Int {
    var entropy = SystemRandom()
    // After success it is closed already.
    defer { try? storage.close() }
    let engine = try Engine(
      account: account, keys: keys, process: ProcessID(entropy.draw()), storage: storage,
      logger: Logger(label: "kith.joining") { _ in SwiftLogNoOpLogHandler() })
    let sessions = engine.state.withLock { $0.transports.pairings }
    _ = engine.beginRunning(transport: sessions)
    async let writer: Void = engine.runWriter()
    let session = sessions.add(channel, engine)
    channel.allowSession()
    session.begin(.join(session.id, inviter))
    let telling = Task { await tell(of: engine) }
    let first = await session.events.first { _ in true }
    let hasPulledAll = if case .pulledAll? = first { true } else { false }
    let ended: CloseReason? = if case .ended(let reason)? = first { reason } else { nil }
    telling.cancel()
    engine.stopWriter()
    await writer
    await telling.value
    let (problem, isMember, pulled) = engine.state.withLock { state in
      (
        state.problem, state.shell.replica.roster.isMember(keys.id),
        state.shell.replica.joinProgress
      )
    }
    try engine.close()
    try Task.checkCancellation()
    if let problem { throw problem }
    guard hasPulledAll, isMember else {
      throw Self.failure(ended, of: inviter)
    }
    // A device is kept only if all of its data is on disk.
    try storage.close()
    if let pulled { progress(JoinProgress(pulled)) }
    return pulled?.partialStores ?? 0
  }

  /// The error if the device exists, and the inviter did not say that the account counts it.
  static func unconfirmed(by introduction: Invitation, partialStores: Int) -> KithError {
    let data =
      switch partialStores {
      case 0: "all that \(introduction.name) has"
      case 1: "what \(introduction.name) has, of 1 store only a part"
      default: "what \(introduction.name) has, of \(partialStores) stores only a part"
      }
    return KithError(
      .timedOut,
      "\(introduction.name) did not say in time that it has admitted this device. This device has "
        + "\(data), and counts once the two meet. Do not join again.",
      device: introduction.device)
  }

  /// The error if not everything came. `reason`: why this device ended the session; nil: it did not.
  static func failure(_ reason: CloseReason?, of inviter: Inviter) -> KithError {
    switch reason {
    case .clocksDiffer:
      KithError(
        .clocksDiffer,
        "The account's clocks are far ahead of the time here (its latest writes are of generation "
          + "\(inviter.clock.generation)), so nothing was kept. Set this host's clock right if it is "
          + "behind, and join again; otherwise see kith clock on the inviting device.",
        device: inviter.device)
    case .protocolViolation:
      KithError(
        .network,
        "The inviting device sent what no Kith sends; nothing was kept. Bring Kith up to date there, "
          + "or have another device of the account invite.", device: inviter.device)
    default:
      KithError(
        .network,
        "The inviting device ended the connection before everything had come; nothing was kept. "
          + "Join again with a new code, and with another device if that one was removed from the "
          + "account.", device: inviter.device)
    }
  }

  private func tell(of engine: Engine) async {
    var last: JoinProgress?
    for await () in engine.progress {
      if let now = engine.read({ $0.joinProgress }).map(JoinProgress.init), now != last {
        last = now
        progress(now)
      }
    }
  }
}

/// The part of the account's data that a joining device has pulled.
public struct JoinProgress: Sendable, Hashable {
  /// The number of the account's stores; 0 until it is known.
  public var stores: Int
  /// The number of stores that were pulled.
  public var pulledStores: Int
  /// The number of stores, among those, that are not whole yet: a device takes at most 16 MiB of one
  /// author into stores that no program on its host has opened. The rest comes once one opens them.
  public var partialStores: Int
  /// The number of change sets that were pulled.
  public var changeSets: Int

  package init(_ progress: (stores: Int, pulledStores: Int, partialStores: Int, changeSets: Int)) {
    stores = progress.stores
    pulledStores = progress.pulledStores
    partialStores = progress.partialStores
    changeSets = progress.changeSets
  }
}

extension Joining.Dialling {
  /// Connects to the given address, or to the first of the token's that answers.
  func connect(with token: InvitationToken, address: String?) async throws -> PairingChannel {
    func connect(_ address: PeerAddress) async throws -> PairingChannel {
      try await dialler.connect(
        to: address, token: SharedPresharedKey(token.presharedKey()), answer: answer)
    }
    if let address {
      return try await first(of: Self.addresses(at: address, usualPort: token.port), connect)
    }
    let addresses = token.addresses.compactMap { try? PeerAddress(host: $0, port: token.port) }
    guard !addresses.isEmpty else {
      throw KithError(
        .network, "The token names no address. Give the other device's address.")
    }
    return try await first(of: addresses) { address in
      do {
        return try await connect(address)
      } catch PairingError.wrongToken(let address) {
        // All addresses are one inviter's, and each wrong token costs a try there.
        throw KithError(pairing: PairingError.wrongToken(address: address))
      }
    }
  }

  /// Connects to the given address, or to the inviter on the LAN that has the code.
  func connect(
    with code: TypedCode, address: String?, _ options: Node.JoinOptions
  ) async throws -> PairingChannel {
    if let address {
      let addresses = try Self.addresses(at: address, usualPort: options.pairingPort)
      return try await first(of: addresses) {
        try await dialler.connect(to: $0, code: code, answer: answer)
      }
    }
    let finder = InvitationFinder(
      .invitations(
        port: options.announcementPort, isLoopbackOnly: options.isLoopbackOnly,
        logger: Logger(label: "kith.pairing") { _ in SwiftLogNoOpLogHandler() }))
    finder.start(for: options.searchTime)
    let channel = await Result(awaiting: { try await connect(with: code, by: finder, options) })
    await finder.stop()
    return try channel.get()
  }

  private func connect(
    with code: TypedCode, by finder: InvitationFinder, _ options: Node.JoinOptions
  ) async throws -> PairingChannel {
    var problem: any Error = KithError(
      .network,
      "No invitation was found on this network. Check that the other device shows a code now, or give "
        + "its address.")
    // One inviter is heard at several addresses; a code that it refused is not sent to it again.
    var refused: Set<Digest128> = []
    for await found in finder.found where !refused.contains(found.announcement.id) {
      do {
        return try await dialler.connect(to: found.address, code: code, answer: answer)
      } catch let error as PairingError {
        switch error {
        case .wrongCode, .invitationOver:
          refused.insert(found.announcement.id)
          problem = error
          if code.isSpent { throw refused.count > 1 ? PairingError.exchangesSpent : error }
        case .cannotConnect, .noInviter, .busy:
          if refused.isEmpty { problem = error }
        default: throw error
        }
        finder.expect(within: options.furtherSearchTime)
      }
    }
    try Task.checkCancellation()
    throw problem
  }

  private func first(
    of addresses: [PeerAddress], _ connect: (PeerAddress) async throws -> PairingChannel
  ) async throws -> PairingChannel {
    var problems: [PairingError] = []
    for address in addresses {
      do {
        return try await connect(address)
      } catch let error as PairingError {
        switch error {
        case .cannotConnect, .noInviter, .wrongToken: problems.append(error)
        default: throw error
        }
      }
    }
    throw problems.count == 1 ? problems[0] : PairingError.noneAnswered(problems)
  }

  /// The addresses to try for one that a person gave. The nodes' port comes last: people copy it
  /// from `kith run`, and a node there is silent until the handshake times out.
  private static func addresses(at text: String, usualPort: UInt16) throws -> [PeerAddress] {
    let given: PeerAddress
    do throws(PeerAddressError) {
      given = try PeerAddress(text, defaultPort: usualPort)
    } catch {
      throw KithError(.network, "\(error).", path: text, cause: error)
    }
    guard given.port != usualPort else { return [given] }
    let usual = try PeerAddress(host: given.host, port: usualPort)
    return given.port == NetworkLimits.defaultPort ? [usual, given] : [given, usual]
  }
}
