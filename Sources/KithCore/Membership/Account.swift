package import KithCrypto

/// The error for a refused change of membership.
package enum MembershipError: Error, Hashable, Sendable {
  /// The name is empty, longer than 64 bytes, or holds control characters or unseen ones.
  case invalidName
  /// The name looks like another member's, but differs.
  case mistakableName
  /// A public key is of low order, so data cannot be sealed to it.
  case invalidKeys
  /// The records hold no genesis of an account.
  case noAccount
  /// The recovery key belongs to another account.
  case wrongRecoveryKey
  /// The device is in the account already, or was revoked; it needs new keys.
  case deviceAlreadyKnown
  /// No epoch of the account can be opened.
  case noEpoch
  /// This device is no longer a member, so its signatures do not count.
  case notAMember
  /// No device of the account has this id.
  case unknownDevice
  /// The device is revoked already.
  case alreadyRevoked
  /// A device cannot revoke itself; another device has to.
  case ownDevice
  /// The roster is full, or more devices stay than a revocation can list.
  case tooManyRecords
}

/// Creates accounts, and recovers them (`Docs/Protocol.md`, "Membership").
package enum Account {
  /// Creates an account: its genesis, signed by the recovery key and the device, and its first
  /// epoch, sealed to both.
  package static func create(
    recovery: RecoveryKey, keys: DeviceKeys, name: String, issued: UInt64,
    entropy: inout some Entropy
  ) throws(MembershipError) -> (account: AccountID, records: [Record]) {
    guard let certificate = Certificate(of: keys, name: name, issued: issued) else {
      throw .invalidName
    }
    let genesis = Genesis(
      recoverySigningKey: recovery.signingPublicKey, recoveryBoxKey: recovery.boxPublicKey,
      firstDevice: certificate)
    let body = RecordBody.encode(genesis)
    let account = AccountID(Blake2b.digest256(body))
    let secret = EpochSecret(random: &entropy)
    let epoch = EpochKeys(secret: secret, generation: 1)
    guard let unsigned = try? Record(body: body, signatures: []),
      let record = Keyring.record(
        of: epoch, parents: [], recipients: [certificate], genesis: genesis, account: account,
        signing: keys.signing, entropy: &entropy)
    else { throw .invalidKeys }
    let signed = unsigned.signed(by: recovery.signing, account: account)
      .signed(by: keys.signing, account: account)
    return (account, [signed, record])
  }

  /// Makes a device a member if no other device is left to do it: a certificate signed by the
  /// recovery key, and a lockbox for every epoch that this key opens.
  ///
  /// - Parameters:
  ///   - recovery: The account's recovery key.
  ///   - records: All known records of the account.
  ///   - keys: The keys of the new device.
  ///   - name: The name of the new device.
  ///   - issued: The time, in milliseconds since 1970.
  ///   - entropy: Seals the lockboxes.
  /// - Returns: Only the new records.
  /// - Throws: ``MembershipError``; then nothing has changed.
  package static func recover(
    recovery: RecoveryKey, records: [Record], keys: DeviceKeys, name: String, issued: UInt64,
    entropy: inout some Entropy
  ) throws(MembershipError) -> [Record] {
    guard let certificate = Certificate(of: keys, name: name, issued: issued) else {
      throw .invalidName
    }
    let roster = try roster(of: recovery, from: records)
    guard roster.certificate(of: keys.id) == nil, !roster.isRevoked(keys.id) else {
      throw .deviceAlreadyKnown
    }
    var keyring = Keyring()
    keyring.refresh(from: roster, recovery: recovery)
    guard !keyring.newestFirst.isEmpty else { throw .noEpoch }
    guard let record = try? Record(body: RecordBody.encode(certificate), signatures: []) else {
      throw .invalidName
    }
    let signed = record.signed(by: recovery.signing, account: roster.account)
      .signed(by: keys.signing, account: roster.account)
    return [signed]
      + keyring.lockboxes(
        for: certificate, account: roster.account, signing: recovery.signing, entropy: &entropy)
  }

  private static func roster(
    of recovery: RecoveryKey, from records: [Record]
  ) throws(MembershipError) -> Roster {
    var hasGenesis = false
    for case (let record, .genesis(let genesis)) in records.map({ ($0, $0.kind) }) {
      hasGenesis = true
      guard genesis.recoverySigningKey == recovery.signingPublicKey,
        genesis.recoveryBoxKey == recovery.boxPublicKey
      else { continue }
      var roster = Roster(account: AccountID(record.id))
      _ = roster.learn(all: records)
      if roster.genesis != nil { return roster }
    }
    throw hasGenesis ? .wrongRecoveryKey : .noAccount
  }
}
