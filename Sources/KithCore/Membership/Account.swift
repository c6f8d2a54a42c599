package import KithCrypto

/// The error for a refused change of membership.
package enum MembershipError: Error, Hashable, Sendable {
  /// The name fails ``Certificate/isValidName(_:)``.
  case invalidName
  /// The name looks like another member's, but differs.
  case mistakableName
  /// A public key is of low order: data cannot be sealed to it.
  case invalidKeys
  /// The records hold no genesis.
  case noAccount
  /// The recovery key is another account's.
  case wrongRecoveryKey
  /// The account knows the device; it needs new keys.
  case deviceAlreadyKnown
  /// No epoch can be opened.
  case noEpoch
  /// This device is not a member: its signatures do not count.
  case notAMember
  case unknownDevice
  case alreadyRevoked
  /// A device cannot revoke itself.
  case ownDevice
  /// The roster is full, or more devices stay than a revocation can list.
  case tooManyRecords
}

/// Creates and recovers accounts (`Docs/Protocol/duties.md`, "Recovery").
package enum Account {
  /// Creates a genesis, signed by the recovery key and the device, and a first epoch, sealed to
  /// both.
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

  /// Makes a device a member if no other device is left to do it.
  ///
  /// Returns only the new records: a certificate, signed by the recovery key and the device, and a
  /// lockbox for every epoch that the recovery key opens. `records` are all known ones; `issued` is
  /// in milliseconds since 1970; `entropy` seals the lockboxes.
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
