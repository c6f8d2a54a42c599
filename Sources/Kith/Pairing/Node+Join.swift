internal import KithCore
public import KithCrypto
internal import KithNetwork

/// The other device of a pairing, as it names itself.
///
/// The join checks that the device which invites is a member before it stores anything.
public struct PairingDevice: Codable, Sendable, Hashable {
  /// The device's id.
  public var id: DeviceID
  /// The device's name.
  public var name: String
  /// The fingerprint, which the other device shows too; two people compare them.
  public var fingerprint: String
  /// Its address.
  public var address: String
}

extension Node {
  /// Joins an account by a short code or a token, with a new device in a new directory.
  ///
  /// The device's keys are made here and never leave it. On return it has all data of the account;
  /// an error before `made` leaves no device. A mistyped digit is reported before anything is sent;
  /// the code is proved to three inviters at most.
  ///
  /// Without `address`, the inviter is at one of the token's, or found on the LAN. If none answers
  /// at the port of `address`, the token's or 4115 is tried. `confirm` gets the inviter and this
  /// device's fingerprint: have people compare them, and return whether to join. `made` is called
  /// once the device exists; if it throws, the account never counts the device.
  ///
  /// - Throws: ``KithError`` with `pairingCode` (and ``KithError/triesLeft``), `declined`,
  ///   `network`, `invalidName`, `alreadyExists`, `cancelled` or a storage code; `timedOut` if the
  ///   device exists, but the inviter did not say that the account counts it.
  package static func join(
    directory: String, name: String, code: String, address: String? = nil,
    passphrase: Passphrase? = nil, options: JoinOptions = JoinOptions(),
    onProgress: @escaping @Sendable (JoinProgress) -> Void = { _ in },
    made: @escaping @Sendable (AccountSummary) async throws(KithError) -> Void = {
      _ async throws(KithError) in
    },
    confirm: @escaping @Sendable (_ inviter: PairingDevice, _ fingerprint: String) async -> Bool
  ) async throws(KithError) -> AccountSummary {
    let joining = Joining(
      directory: directory, name: name, passphrase: passphrase, options: options,
      progress: onProgress, made: made, confirm: confirm)
    if isToken(code) {
      let token: InvitationToken
      do throws(InvitationTokenError) {
        token = try InvitationToken(text: code)
      } catch {
        throw KithError(
          .pairingCode, "This is no pairing token: \(error). Copy it whole.", cause: error)
      }
      return try await joining.run { try await $0.connect(with: token, address: address) }
    }
    let typed: TypedCode
    do throws(PairingCodeError) {
      typed = TypedCode(try PairingCode(text: code))
    } catch {
      throw KithError(
        .pairingCode, "This is no pairing code: \(error). Nothing was sent; type it again.",
        cause: error)
    }
    return try await joining.run {
      try await $0.connect(with: typed, address: address, options)
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
    /// How long the inviter may take to count the device.
    package var timeout: Duration = .seconds(30)
    /// The UDP port of announcements; tests take their own.
    package var announcementPort = NetworkLimits.defaultPairingPort
    /// The port of invitations; tests take their own.
    package var pairingPort = NetworkLimits.defaultPairingPort
    package var isLoopbackOnly = false

    package init() {}
  }
}
