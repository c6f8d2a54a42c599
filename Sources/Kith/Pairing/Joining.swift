internal import KithCore
internal import KithCrypto
internal import KithNetwork
internal import KithStorage
internal import Logging
internal import NIOPosix

/// One new device on its way into an account.
struct Joining: Sendable {
  /// What connecting needs: the new device's keys and its request.
  struct Dialling: Sendable {
    let dialler: PairingDialler
    let answer: @Sendable ([UInt8], TransportPublicKey) throws -> [UInt8]

    init(_ keys: DeviceKeys, name: String) {
      dialler = PairingDialler(keys: keys, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
      answer = { payload, _ in
        guard let inviter = Invitation(decoding: payload) else { throw PairingError.closed }
        let certificate = try JoinRequest.make(
          account: inviter.account, keys: keys, name: name,
          issued: SystemClock.now().wallMilliseconds)
        return JoinRequestMessage(certificate: certificate).encoded()
      }
    }
  }

  let directory: String
  let name: String
  let passphrase: Passphrase?

  /// A device that is to be made in a directory that holds none.
  init(directory: String, name: String, passphrase: Passphrase?) throws(KithError) {
    guard !DeviceDirectory.holdsDevice(directory) else {
      throw KithError(
        .alreadyExists, "The directory holds a device already. Give another one.",
        path: directory)
    }
    self.directory = directory
    self.name = name
    self.passphrase = passphrase
  }

  /// Meets the inviter, has a person confirm, and makes the device once the inviter has accepted it.
  func run(
    _ confirm: @escaping @Sendable (InvitingDevice, String) async -> Bool,
    connect: @Sendable (Dialling) async throws -> PairingChannel
  ) async throws(KithError) -> AccountSummary {
    // Before the account takes the device in: nothing takes it out again.
    let reserved = try Storage.reserve(directory)
    do {
      return try await meet(reserved, confirm, connect)
    } catch {
      throw KithError(pairing: error)
    }
  }

  private func meet(
    _ reserved: ReservedDirectory, _ confirm: @Sendable (InvitingDevice, String) async -> Bool,
    _ connect: @Sendable (Dialling) async throws -> PairingChannel
  ) async throws -> AccountSummary {
    var entropy = SystemRandom()
    let secrets = DeviceSecrets(random: &entropy)
    let keys = secrets.makeKeys()
    let channel = try await connect(Dialling(keys, name: name))
    defer { channel.close() }
    guard let inviter = Invitation(decoding: channel.remotePayload) else {
      throw PairingError.closed
    }
    let inviting = InvitingDevice(
      device: inviter.device, name: inviter.name,
      fingerprint: Fingerprint(of: inviter.device).description, address: channel.remoteAddress)
    guard await confirm(inviting, Fingerprint(of: keys.id).description) else {
      throw KithError(
        .declined, "The device did not join.", device: inviter.device)
    }
    // An inviter that has declined already does not take it; its reply says so.
    try? channel.send(JoinConfirm().encoded())
    guard let reply = JoinReply(decoding: try await channel.receive()) else {
      throw PairingError.closed
    }
    let (roster, _) = try JoinRequest.check(reply, invitation: inviter, keys: keys)
    guard roster.certificate(of: inviter.device)?.transportKey == channel.remoteStatic else {
      throw JoinError.inviterNotMember
    }
    var initial: [Mutation] = roster.records.map { .putRecord($0.id, $0.encoded) }
    initial.append(.setProvisional(true))
    for (device, texts) in reply.addresses.sorted(by: { $0.key < $1.key }) {
      initial.append(.setAddresses(device, Array(texts.prefix(LocalAddresses.limit))))
    }
    try Storage.create(reserved, secrets, initial, passphrase)
    try channel.send(JoinDone().encoded())
    await channel.awaitEnd()
    return AccountSummary(account: roster.account, device: keys.id, name: name)
  }
}

extension Joining.Dialling {
  /// Connects by a token: to the address given, or to the first of its own that answers.
  func connect(with token: InvitationToken, address: String?) async throws -> PairingChannel {
    func connect(_ address: PeerAddress) async throws -> PairingChannel {
      try await dialler.connect(
        to: address, token: SharedPresharedKey(token.presharedKey()), answer: answer)
    }
    if let address {
      return try await first(of: Self.places(at: address, usualPort: token.port), connect)
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
        // All are one inviter's, where each further wrong token spends a try.
        throw KithError(pairing: PairingError.wrongToken(address: address))
      }
    }
  }

  /// Connects by a code: to the address given, or to whoever on the LAN has it.
  func connect(
    with code: TypedCode, address: String?, _ options: Node.JoinOptions
  ) async throws -> PairingChannel {
    if let address {
      let places = try Self.places(at: address, usualPort: options.pairingPort)
      return try await first(of: places) {
        try await dialler.connect(to: $0, code: code, answer: answer)
      }
    }
    let finder = InvitationFinder(
      port: options.announcementPort, isLoopbackOnly: options.isLoopbackOnly,
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
      logger: Logger(label: "kith.pairing") { _ in SwiftLogNoOpLogHandler() })
    finder.start(for: options.searchTime)
    do {
      let channel = try await connect(with: code, by: finder, options)
      await finder.stop()
      return channel
    } catch {
      await finder.stop()
      throw error
    }
  }

  private func connect(
    with code: TypedCode, by finder: InvitationFinder, _ options: Node.JoinOptions
  ) async throws -> PairingChannel {
    var problem: any Error = KithError(
      .network,
      "No invitation was found on this network. Check that the other device shows a code now, or give "
        + "its address.")
    // One inviter is heard from several of its addresses; a wrong code is told to it once.
    var refused: Set<Digest128> = []
    for await found in finder.found where !refused.contains(found.announcement.id) {
      do {
        return try await dialler.connect(to: found.address, code: code, answer: answer)
      } catch let error as PairingError {
        switch error {
        case .wrongCode:
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

  /// Connects to the first of some addresses at which an inviter answers.
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

  /// Where an inviter may listen at an address that a person gave: at its port, or at the port where
  /// invitations listen. The port of nodes comes last: it is the one that `kith run` shows, and a node
  /// there lets the time for a handshake pass in silence.
  private static func places(at text: String, usualPort: UInt16) throws -> [PeerAddress] {
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
