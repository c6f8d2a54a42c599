internal import KithCore
public import KithCrypto
internal import KithNetwork

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
  /// Joins the account that a token invites to, with a new device in a new directory. Its keys are
  /// made here and never leave it. Until it has pulled once, what it writes is provisional.
  ///
  /// - Parameters:
  ///   - directory: Where to keep the device; made if it is missing.
  ///   - name: What people call the device, 1 to 64 bytes.
  ///   - token: The long token, as printed by the inviting device.
  ///   - address: Where the inviting device is, `host:port`, instead of what the token says.
  ///     The token's port counts where none is given, and is tried as well where no inviter answers
  ///     at the one given.
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
    let joining = try Joining(directory: directory, name: name, passphrase: passphrase)
    let invitation = try invitation(token)
    return try await joining.run { inviter, fingerprint in
      onMeeting(inviter, fingerprint)
      return true
    } connect: {
      try await $0.connect(with: invitation, address: address)
    }
  }

  /// Joins the account of the device that shows a short code, with a new device in a new directory.
  /// Its keys are made here and never leave it. Until it has pulled once, what it writes is
  /// provisional.
  ///
  /// The code is typed by a person: a digit that is wrong is told before anything is sent, and it is
  /// proved to three inviting devices at most. A token is taken as well.
  ///
  /// - Parameters:
  ///   - directory: Where to keep the device; made if it is missing.
  ///   - name: What people call the device, 1 to 64 bytes.
  ///   - code: The code, as shown by the inviting device; or the token.
  ///   - address: Where the inviting device is, `host` or `host:port`; nil: it is found on the LAN.
  ///     If no inviter answers at the port, the one where invitations listen (4115) is tried as well.
  ///   - passphrase: What to put the device's secrets under; nil: nothing.
  ///   - options: How to look for the inviting device.
  ///   - confirm: Gets the inviting device and this one's fingerprint, once the two have met: show
  ///     both, have them compared, and say whether to join.
  /// - Returns: The account and the new device.
  /// - Throws: ``KithError`` with `pairingCode` (and ``KithError/triesLeft``), `declined`, `network`,
  ///   `invalidName`, `alreadyExists`, `cancelled` or a storage code; no device is made then.
  public static func join(
    directory: String, name: String, code: String, address: String? = nil,
    passphrase: Passphrase? = nil, options: JoinOptions = JoinOptions(),
    confirm: @escaping @Sendable (_ inviter: InvitingDevice, _ fingerprint: String) async -> Bool
  ) async throws(KithError) -> AccountSummary {
    let joining = try Joining(directory: directory, name: name, passphrase: passphrase)
    if isToken(code) {
      let invitation = try invitation(code)
      return try await joining.run(confirm) {
        try await $0.connect(with: invitation, address: address)
      }
    }
    let typed: TypedCode
    do throws(PairingCodeError) {
      typed = TypedCode(try PairingCode(text: code))
    } catch {
      throw KithError(
        .pairingCode, "This is no pairing code: \(error). Nothing was sent; type it again.",
        cause: error)
    }
    return try await joining.run(confirm) {
      try await $0.connect(with: typed, address: address, options)
    }
  }

  private static func invitation(_ text: String) throws(KithError) -> InvitationToken {
    do throws(InvitationTokenError) {
      return try InvitationToken(text: text)
    } catch {
      throw KithError(
        .pairingCode, "This is no pairing token: \(error). Copy it whole.", cause: error)
    }
  }

  /// Whether a text is meant to be a long token, not a short code.
  package static func isToken(_ text: String) -> Bool {
    text.drop(while: \.isWhitespace).prefix(4).lowercased() == "kith"
  }
}

extension Node {
  /// How a joiner looks for the inviting device.
  public struct JoinOptions: Sendable {
    /// How long to look on the LAN.
    public var searchTime: Duration = .seconds(30)
    /// How long to look on after one that was found did not serve.
    package var furtherSearchTime: Duration = .seconds(4)
    /// The UDP port of announcements; tests take their own.
    package var announcementPort = NetworkLimits.defaultPairingPort
    /// The port at which invitations listen; tests take their own.
    package var pairingPort = NetworkLimits.defaultPairingPort
    /// Whether to look on this host alone.
    package var isLoopbackOnly = false

    /// The defaults.
    public init() {}
  }
}
