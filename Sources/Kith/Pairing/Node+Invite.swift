internal import KithCore
public import KithCrypto
internal import KithNetwork
internal import NIOPosix

/// A device that asks to join, for a person to decide about.
public struct JoinCandidate: Sendable, Hashable {
  /// The device.
  public var device: DeviceID
  /// The name it gives itself.
  public var name: String
  /// What both persons compare: the same text stands on the other device.
  public var fingerprint: String
  /// Where it is.
  public var address: String
}

extension Node {
  /// How an invitation is made.
  public struct InvitationOptions: Sendable {
    /// The hosts to listen on for the joiner; nil: the node's.
    public var hosts: [String]?
    /// The port to listen on for the joiner; 0: any.
    public var port: UInt16 = 0
    /// The hosts to name in the code; nil: this host's own addresses.
    public var addresses: [String]?
    /// How long the code is good for, at most 10 minutes.
    public var lifetime: Duration = .seconds(600)

    /// The defaults.
    public init() {}
  }

  /// Invites one device: makes a code, waits for a device that has it, asks whether to take it in,
  /// and makes it a member. A code allows 3 tries and 10 minutes.
  ///
  /// - Parameters:
  ///   - options: Where to listen, and for how long.
  ///   - onToken: Gets the code, to be shown or carried to the joining device.
  ///   - onJoinRequest: Decides; ask a person to compare the fingerprints.
  /// - Returns: The new device.
  /// - Throws: ``KithError`` with `pairingCode`, `declined`, `network`, `cancelled` or a storage
  ///   code.
  @discardableResult
  public func invite(
    options: InvitationOptions = InvitationOptions(),
    onToken: @escaping @Sendable (_ token: String) async -> Void,
    onJoinRequest: @escaping @Sendable (JoinCandidate) async -> Bool
  ) async throws(KithError) -> JoinCandidate {
    do {
      return try await runInvitation(options, onToken, onJoinRequest)
    } catch {
      throw KithError(pairing: error)
    }
  }

  private func runInvitation(
    _ options: InvitationOptions, _ onToken: @Sendable (String) async -> Void,
    _ onJoinRequest: @Sendable (JoinCandidate) async -> Bool
  ) async throws -> JoinCandidate {
    var entropy = SystemRandom()
    let secret = InvitationSecret(random: &entropy)
    let draft = try InvitationToken(
      secret: secret.copy(), port: 1, addresses: [])
    let device = self.device
    let name = engine.read { $0.roster.name(of: device) } ?? "device"
    var configuration = PairingConfiguration()
    configuration.hosts = options.hosts ?? self.configuration.hosts
    configuration.port = options.port
    configuration.lifetime = min(options.lifetime, .seconds(600))
    let listener = PairingListener(
      keys: engine.keys, token: SharedPresharedKey(draft.presharedKey()),
      invitation: Invitation(account: account, device: device, name: name).encoded(),
      configuration: configuration, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
    let bound = try await listener.bind()
    do {
      let token = try InvitationToken(
        secret: secret, port: bound.first?.port ?? 0,
        addresses: options.addresses ?? LocalAddresses.hosts(listeningOn: configuration.hosts))
      await onToken(token.text)
      let channel = try await listener.accept()
      let candidate = try await admit(channel, onJoinRequest)
      await listener.close()
      return candidate
    } catch {
      await listener.close()
      throw error
    }
  }

  private func admit(
    _ channel: PairingChannel, _ onJoinRequest: @Sendable (JoinCandidate) async -> Bool
  ) async throws -> JoinCandidate {
    defer { channel.close() }
    guard let request = JoinRequestMessage(decoding: channel.remotePayload) else {
      throw JoinError.notACertificate
    }
    let roster = engine.read { $0.roster }
    let certificate = try JoinRequest.verify(request.certificate, roster: roster)
    guard certificate.transportKey == channel.remoteStatic else { throw JoinError.keysInUse }
    let candidate = JoinCandidate(
      device: certificate.device, name: certificate.name,
      fingerprint: Fingerprint(of: certificate.device).description,
      address: channel.remoteAddress)
    guard await onJoinRequest(candidate) else {
      try channel.send(JoinReply(isAccepted: false).encoded())
      throw KithError(.declined, "The device was not taken in.", device: certificate.device)
    }
    let records = try learn(request.certificate, of: candidate.device)
    try channel.send(
      JoinReply(isAccepted: true, records: records, addresses: reachableAddresses).encoded())
    guard JoinDone(decoding: try await channel.receive()) != nil else {
      throw PairingError.closed
    }
    return candidate
  }

  /// Makes a confirmed device a member, durably, and returns the records that it needs.
  private func learn(_ request: Record, of joiner: DeviceID) throws -> [Record] {
    let (roster, keyring) = engine.read { ($0.roster, $0.keyring) }
    var entropy = SystemRandom()
    let added = try JoinRequest.accept(
      request, roster: roster, keyring: keyring, keys: engine.keys, entropy: &entropy)
    engine.input(.learn(added))
    try engine.flush()
    let device = self.device
    let (all, some) = engine.read {
      ($0.roster.records, $0.roster.recordsForStranger(device: device, peer: joiner))
    }
    // The rest is exchanged in the first session.
    let size = all.reduce(0) { $0 + $1.encoded.count + 8 }
    return size < NetworkLimits.pairingMessageBytes * 3 / 4 ? all : some + added
  }

  /// Where this node, and the devices it knows, may be met.
  private var reachableAddresses: [DeviceID: [String]] {
    var addresses: [DeviceID: [String]] = [:]
    for device in engine.read({ $0.status().devices }) where !device.addresses.isEmpty {
      addresses[device.id] = device.addresses
    }
    let port = listening.withLock { $0.first?.port } ?? configuration.port
    if port != 0 {
      addresses[device] = LocalAddresses.hosts(listeningOn: configuration.hosts)
        .compactMap { try? PeerAddress(host: $0, port: port).description }
    }
    return addresses
  }
}
