public import KithCore
public import KithCrypto
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
    try Storage.create(
      Storage.reserve(directory), secrets, records.map { .put(.record($0.id), $0.encoded) },
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
    let old = try Storage.open(source, sourcePassphrase)
    defer { try? old.close() }
    let snapshot = try Storage.load(old)
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
    let account = try Storage.account(of: old)
    let initial =
      (records + added).map { Mutation.put(.record($0.id), $0.encoded) } + snapshot.forAnotherDevice
    try Storage.create(Storage.reserve(directory), secrets, initial, passphrase)
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
