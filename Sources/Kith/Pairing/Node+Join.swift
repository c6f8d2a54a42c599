internal import KithCore
public import KithCrypto
internal import KithNetwork

/// The device that invites, as it names itself.
///
/// The join checks that it is a member before it stores anything.
public struct InvitingDevice: Sendable, Hashable {
  /// The device's id.
  public var device: DeviceID
  /// The device's name.
  public var name: String
  /// The fingerprint, which the other device shows too; two people compare them.
  public var fingerprint: String
  /// The address at which it answered.
  public var address: String
}

extension Node {
  /// Joins an account by a token, with a new device in a new directory.
  ///
  /// The device's keys are made here and never leave it. On return it has all data of the account;
  /// an error leaves no device. `address` replaces the token's; the token's port is tried if it has
  /// no port, or if no inviter answers there. `onMeeting` gets the inviter and this device's
  /// fingerprint before anything is confirmed.
  ///
  /// - Throws: ``KithError`` with `pairingCode`, `declined`, `network`, `invalidName`,
  ///   `alreadyExists`, `cancelled` or a storage code.
  package static func join(
    directory: String, name: String, token: String, address: String? = nil,
    passphrase: Passphrase? = nil,
    onMeeting: @escaping @Sendable (_ inviter: InvitingDevice, _ fingerprint: String) -> Void = {
      _, _ in
    },
    onProgress: @escaping @Sendable (JoinProgress) -> Void = { _ in }
  ) async throws(KithError) -> AccountSummary {
    // A code is no token.
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

  /// Joins an account by a short code or a token, with a new device in a new directory.
  ///
  /// A mistyped digit is reported before anything is sent; the code is proved to three inviters at
  /// most. Without `address`, the inviter is found on the LAN; if none answers at the port of
  /// `address`, 4115 is tried. `confirm` gets the inviter and this device's fingerprint: have
  /// people compare them, and return whether to join.
  ///
  /// - Throws: As by a token, also with ``KithError/triesLeft``.
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

  /// Joins by a code. `made` is called as in `Joining.Hooks`.
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
  package struct JoinOptions: Sendable {
    package var searchTime: Duration = .seconds(30)
    /// How long to look on after an inviter that failed.
    package var furtherSearchTime: Duration = .seconds(4)
    /// The UDP port of announcements; tests take their own.
    package var announcementPort = NetworkLimits.defaultPairingPort
    /// The port of invitations; tests take their own.
    package var pairingPort = NetworkLimits.defaultPairingPort
    package var isLoopbackOnly = false

    package init() {}
  }
}
