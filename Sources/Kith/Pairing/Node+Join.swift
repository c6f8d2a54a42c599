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
  /// The fingerprint that both persons compare: the other device shows the same text.
  public var fingerprint: String
  /// The address at which it was met.
  public var address: String
}

extension Node {
  /// Joins the account that a token invites to, with a new device in a new directory. Its keys are
  /// made here and never leave it. On return it has all that the account has.
  ///
  /// - Parameters:
  ///   - directory: The directory for the device; made if it is missing.
  ///   - name: The device's name for people, 1 to 64 bytes.
  ///   - token: The long token, as printed by the inviting device.
  ///   - address: The address of the inviting device, `host:port`, instead of the one in the token.
  ///     If it has no port, the token's port is used. If no inviter answers at the given port, the
  ///     token's port is tried as well.
  ///   - passphrase: Protects the device's secrets; nil: no passphrase.
  ///   - onMeeting: Gets the inviting device and this one's fingerprint, once the two have met and
  ///     before anything is confirmed: show both, so that they can be compared.
  ///   - onProgress: Gets how much has come, now and then.
  /// - Returns: The account and the new device.
  /// - Throws: ``KithError`` with `pairingCode`, `declined`, `network`, `invalidName`,
  ///   `alreadyExists`, `cancelled` or a storage code; no device is made then.
  package static func join(
    directory: String, name: String, token: String, address: String? = nil,
    passphrase: Passphrase? = nil,
    onMeeting: @escaping @Sendable (_ inviter: InvitingDevice, _ fingerprint: String) -> Void = {
      _, _ in
    },
    onProgress: @escaping @Sendable (JoinProgress) -> Void = { _ in }
  ) async throws(KithError) -> AccountSummary {
    // A code is not taken for a token.
    guard isToken(token) else { throw noToken(token) }
    return try await join(
      directory: directory, name: name, code: token, address: address, passphrase: passphrase,
      JoinOptions(),
      Joining.Hooks(
        confirm: { inviter, fingerprint in
          onMeeting(inviter, fingerprint)
          return true
        }, progress: onProgress))
  }

  /// Joins the account of the device that shows a short code, with a new device in a new directory.
  /// Its keys are made here and never leave it. On return it has all that the account has.
  ///
  /// The code is typed by a person. A wrong digit is reported before anything is sent, and the code
  /// is proved to three inviting devices at most. A token is accepted as well.
  ///
  /// - Parameters:
  ///   - directory: The directory for the device; made if it is missing.
  ///   - name: The device's name for people, 1 to 64 bytes.
  ///   - code: The code, as shown by the inviting device; or the token.
  ///   - address: The address of the inviting device, `host` or `host:port`; nil: it is found on
  ///     the LAN. If no inviter answers at the port, the port of invitations (4115) is tried as
  ///     well.
  ///   - passphrase: Protects the device's secrets; nil: no passphrase.
  ///   - options: How to look for the inviting device.
  ///   - onProgress: Gets how much has come, now and then.
  ///   - confirm: Gets the inviting device and this one's fingerprint, once the two have met: show
  ///     both, have them compared, and say whether to join.
  /// - Returns: The account and the new device.
  /// - Throws: ``KithError`` with `pairingCode` (and ``KithError/triesLeft``), `declined`, `network`,
  ///   `invalidName`, `alreadyExists`, `cancelled` or a storage code; no device is made then.
  package static func join(
    directory: String, name: String, code: String, address: String? = nil,
    passphrase: Passphrase? = nil, options: JoinOptions = JoinOptions(),
    onProgress: @escaping @Sendable (JoinProgress) -> Void = { _ in },
    confirm: @escaping @Sendable (_ inviter: InvitingDevice, _ fingerprint: String) async -> Bool
  ) async throws(KithError) -> AccountSummary {
    try await join(
      directory: directory, name: name, code: code, address: address, passphrase: passphrase,
      options, Joining.Hooks(confirm: confirm, progress: onProgress))
  }

  /// Joins as a program does by a code. Then `made` is called once the device exists, before the account
  /// counts it; if it throws, the account never does.
  package static func join(
    directory: String, name: String, code: String, address: String?, passphrase: Passphrase?,
    onProgress: @escaping @Sendable (JoinProgress) -> Void,
    made: @escaping @Sendable (AccountSummary) async throws(KithError) -> Void,
    confirm: @escaping @Sendable (_ inviter: InvitingDevice, _ fingerprint: String) async -> Bool
  ) async throws(KithError) -> AccountSummary {
    try await join(
      directory: directory, name: name, code: code, address: address, passphrase: passphrase,
      JoinOptions(), Joining.Hooks(confirm: confirm, progress: onProgress, made: made))
  }

  /// Joins by a code or token. The hooks say what else is done with the device.
  static func join(
    directory: String, name: String, code: String, address: String?, passphrase: Passphrase?,
    _ options: JoinOptions, _ hooks: Joining.Hooks
  ) async throws(KithError) -> AccountSummary {
    let joining = try Joining(directory: directory, name: name, passphrase: passphrase)
    if isToken(code) {
      let invitation = try invitation(code)
      return try await joining.run(hooks) {
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
    return try await joining.run(hooks) {
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

  /// The error for a text that is no token.
  static func noToken(_ text: String) -> KithError {
    do throws(KithError) {
      _ = try invitation(text)
      return KithError(.pairingCode, "This is no pairing token. Copy it whole.")
    } catch {
      return error
    }
  }

  /// Whether a text is meant to be a long token, not a short code.
  package static func isToken(_ text: String) -> Bool {
    text.drop(while: \.isWhitespace).prefix(4).lowercased() == "kith"
  }
}

extension Node {
  /// How a joiner looks for the inviting device.
  package struct JoinOptions: Sendable {
    /// How long to look on the LAN.
    package var searchTime: Duration = .seconds(30)
    /// How long to look on after one that was found did not serve.
    package var furtherSearchTime: Duration = .seconds(4)
    /// The UDP port of announcements; tests take their own.
    package var announcementPort = NetworkLimits.defaultPairingPort
    /// The port at which invitations listen; tests take their own.
    package var pairingPort = NetworkLimits.defaultPairingPort
    /// Whether to look on this host alone.
    package var isLoopbackOnly = false

    /// The defaults.
    package init() {}
  }
}
