public import KithCore
public import KithCrypto
internal import KithNetwork
internal import KithStorage

/// An account for which a directory was just made.
public struct AccountSummary: Sendable, Hashable {
  /// The account.
  public var account: AccountID
  /// The new device.
  public var device: DeviceID
  /// The new device's name.
  public var name: String
}

extension Node {
  /// Creates an account, with its first device in a new directory.
  ///
  /// `show` gets the account and its recovery key before the account exists, so that no account's
  /// key is unseen. If `show` throws, no account is created. The key is stored nowhere: show it
  /// once, to be written down. The name has 1 to 64 bytes.
  ///
  /// - Throws: ``KithError`` with `invalidName`, `alreadyExists` or a storage code, or the error
  ///   that `show` throws.
  package static func createAccount(
    directory: String, name: String, passphrase: Passphrase? = nil,
    showing show: (_ summary: AccountSummary, _ recoveryKey: String) throws(KithError) -> Void = {
      (_, _) throws(KithError) in
    }
  ) throws(KithError) -> (summary: AccountSummary, recoveryKey: String) {
    var entropy = SystemRandom()
    let secrets = DeviceSecrets(random: &entropy)
    let keys = secrets.makeKeys()
    let recovery = RecoveryKey(entropy: &entropy)
    let account: AccountID
    let records: [Record]
    do throws(MembershipError) {
      (account, records) = try Account.create(
        recovery: recovery, keys: keys, name: name,
        issued: SystemClock.now().wallMilliseconds, entropy: &entropy)
    } catch {
      throw KithError(error)
    }
    let summary = AccountSummary(account: account, device: keys.id, name: name)
    try DeviceStorage.create(
      DeviceStorage.reserve(directory), secrets, records.map { .put(.record($0.id), $0.encoded) },
      passphrase
    ) { () throws(KithError) in try show(summary, recovery.text) }
    return (summary, recovery.text)
  }

  /// Regains an account that has no device left. Takes over all data of a dead device's directory,
  /// or of a copy of it, also its drafts, and certifies a new device with the recovery key.
  ///
  /// - Throws: ``KithError`` with `recoveryKey`, `passphrase`, `invalidName`, `alreadyExists` or a
  ///   storage code.
  package static func recoverAccount(
    directory: String, from source: String, recoveryKey: String, name: String,
    passphrase: Passphrase? = nil, sourcePassphrase: PassphraseQuestion? = nil
  ) throws(KithError) -> AccountSummary {
    let recovery: RecoveryKey
    do throws(RecoveryKeyError) {
      recovery = try RecoveryKey(text: recoveryKey)
    } catch {
      throw KithError(
        .recoveryKey, "This is no recovery key: \(error). Compare it with what was written down.",
        cause: error)
    }
    try checkSource(source)
    let old = try DeviceStorage.open(source, sourcePassphrase)
    defer { try? old.close() }
    let snapshot = try DeviceStorage.load(old)
    let records = snapshot.records.values.compactMap { try? Record(decoding: $0) }
      .sorted { $0.id < $1.id }
    var entropy = SystemRandom()
    let secrets = DeviceSecrets(random: &entropy)
    let keys = secrets.makeKeys()
    let added: [Record]
    do throws(MembershipError) {
      added = try Account.recover(
        recovery: recovery, records: records, keys: keys, name: name,
        issued: SystemClock.now().wallMilliseconds, entropy: &entropy)
    } catch {
      throw KithError(error)
    }
    let account = try DeviceStorage.account(of: old)
    let initial =
      (records + added).map { Mutation.put(.record($0.id), $0.encoded) } + snapshot.forAnotherDevice
    try DeviceStorage.create(DeviceStorage.reserve(directory), secrets, initial, passphrase)
    return AccountSummary(account: account, device: keys.id, name: name)
  }

  /// The recovery key alone reads nothing: the keys to the data are in a device's directory.
  private static func checkSource(_ source: String) throws(KithError) {
    guard try !KithError.mapping(DeviceDirectory.findsDevice(source)) else { return }
    let isCarrier = DeviceDirectory.isPlaceOfCarrier(source)
    throw KithError(
      .missing,
      (isCarrier ? "This is the folder of a carrier: it has sealed writes, but no keys. " : "")
        + "Give --from the directory of one of the account's devices, or a backup of it: it holds the "
        + "files secrets and kith.sqlite.", path: source)
  }
}

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
