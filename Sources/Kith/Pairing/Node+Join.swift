internal import KithCore
public import KithCrypto
internal import KithNetwork
internal import KithStorage
internal import NIOPosix

/// The device that invites, as it names itself. Whether it is a member is checked before anything
/// is kept.
public struct InvitingDevice: Sendable, Hashable {
  /// The device.
  public var device: DeviceID
  /// Its name.
  public var name: String
  /// What both persons compare: the same text stands on the other device.
  public var fingerprint: String
  /// Where it was met.
  public var address: String
}

extension Node {
  /// Joins the account that a code invites to, with a new device in a new directory. Its keys are
  /// made here and never leave it. Until it has pulled once, what it writes is provisional.
  ///
  /// - Parameters:
  ///   - directory: Where to keep the device; made if it is missing.
  ///   - name: What people call the device, 1 to 64 bytes.
  ///   - token: The code, as shown by the inviting device.
  ///   - address: Where the inviting device is, `host:port`, instead of what the code says. The
  ///     code's port counts where none is given.
  ///   - passphrase: What to put the device's secrets under; nil: nothing.
  ///   - onMeeting: Gets the inviting device and this one's fingerprint, once the two have met and
  ///     before anything is confirmed: show both, so that they can be compared.
  /// - Returns: The account and the new device.
  /// - Throws: ``KithError`` with `pairingCode`, `declined`, `network`, `invalidName`,
  ///   `alreadyExists`, `cancelled` or a storage code; no device is made then.
  public static func join(
    directory: String, name: String, token: String, address: String? = nil,
    passphrase: Passphrase? = nil,
    onMeeting: @escaping @Sendable (_ inviter: InvitingDevice, _ fingerprint: String) -> Void = {
      _, _ in
    }
  ) async throws(KithError) -> AccountSummary {
    guard !DeviceDirectory.holdsDevice(directory) else {
      throw KithError(
        .alreadyExists, "The directory holds a device already. Give another one.",
        path: directory)
    }
    let invitation: InvitationToken
    do throws(InvitationTokenError) {
      invitation = try InvitationToken(text: token)
    } catch {
      throw KithError(
        .pairingCode, "This is no pairing code: \(error). Copy it whole.", cause: error)
    }
    // Before the account takes the device in: nothing takes it out again.
    let reserved = try Storage.reserve(directory)
    do {
      return try await join(
        reserved, name, invitation, addresses(invitation, address), passphrase, onMeeting)
    } catch {
      throw KithError(pairing: error)
    }
  }

  private static func addresses(
    _ invitation: InvitationToken, _ address: String?
  ) throws -> [PeerAddress] {
    if let address {
      do throws(PeerAddressError) {
        return [try PeerAddress(address, defaultPort: invitation.port)]
      } catch {
        throw KithError(.network, "\(error).", path: address, cause: error)
      }
    }
    return invitation.addresses.compactMap { try? PeerAddress(host: $0, port: invitation.port) }
  }

  private static func join(
    _ directory: ReservedDirectory, _ name: String, _ invitation: InvitationToken,
    _ addresses: [PeerAddress], _ passphrase: Passphrase?,
    _ onMeeting: @escaping @Sendable (InvitingDevice, String) -> Void
  ) async throws -> AccountSummary {
    var entropy = SystemRandom()
    let secrets = DeviceSecrets(random: &entropy)
    let keys = secrets.makeKeys()
    let fingerprint = Fingerprint(of: keys.id).description
    let channel = try await connect(addresses, keys, name, invitation) { inviter in
      onMeeting(inviter, fingerprint)
    }
    defer { channel.close() }
    guard let inviter = Invitation(decoding: channel.remotePayload),
      let reply = JoinReply(decoding: try await channel.receive())
    else { throw PairingError.closed }
    let (roster, _) = try JoinRequest.check(reply, invitation: inviter, keys: keys)
    guard roster.certificate(of: inviter.device)?.transportKey == channel.remoteStatic else {
      throw JoinError.inviterNotMember
    }
    var initial: [Mutation] = roster.records.map { .putRecord($0.id, $0.encoded) }
    initial.append(.setProvisional(true))
    for (device, texts) in reply.addresses.sorted(by: { $0.key < $1.key }) {
      initial.append(.setAddresses(device, Array(texts.prefix(LocalAddresses.limit))))
    }
    try Storage.create(directory, secrets, initial, passphrase)
    try channel.send(JoinDone().encoded())
    return AccountSummary(account: roster.account, device: keys.id, name: name)
  }

  /// Connects to the first address that answers.
  private static func connect(
    _ addresses: [PeerAddress], _ keys: DeviceKeys, _ name: String,
    _ invitation: InvitationToken, _ onInviter: @escaping @Sendable (InvitingDevice) -> Void
  ) async throws -> PairingChannel {
    let dialler = PairingDialler(
      keys: keys, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
    var problem: any Error = KithError(
      .network, "The code names no address. Give the other device's address.")
    for address in addresses {
      do {
        return try await dialler.connect(
          to: address, token: SharedPresharedKey(invitation.presharedKey())
        ) { payload, _ in
          guard let inviter = Invitation(decoding: payload) else { throw PairingError.closed }
          onInviter(
            InvitingDevice(
              device: inviter.device, name: inviter.name,
              fingerprint: Fingerprint(of: inviter.device).description,
              address: address.description))
          let certificate = try JoinRequest.make(
            account: inviter.account, keys: keys, name: name,
            issued: SystemClock.now().wallMilliseconds)
          return JoinRequestMessage(certificate: certificate).encoded()
        }
      } catch let error as PairingError {
        guard case .cannotConnect = error else { throw error }
        problem = error
      }
    }
    throw problem
  }
}
