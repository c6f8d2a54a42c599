package import KithCrypto

/// The error of a failed join. Every case leaves both sides unchanged.
package enum JoinError: Error, Hashable, Sendable {
  /// The request is not a certificate.
  case notACertificate
  /// The new device did not sign its certificate.
  case notSelfSigned
  /// Another device already has the device id or the transport key.
  case keysInUse
  /// The device was revoked; it needs new keys.
  case revoked
  /// The name is empty, longer than 64 bytes, or holds control characters or unseen ones.
  case invalidName
  /// The name looks like a member's, but differs.
  case mistakableName
  /// A key is of low order, so data cannot be sealed to it.
  case invalidKeys
  /// The inviter is not a member or has no open epoch, or the account has had as many devices as a
  /// roster keeps.
  case inviterCannotInvite
  /// The inviter declined.
  case declined
  /// The reply's records are not those of the account that the invitation named.
  case wrongAccount
  /// The reply's records do not make the inviter a member.
  case inviterNotMember
  /// The reply's records do not make this device a member.
  case notMember
  /// No current epoch opens with this device's keys.
  case noEpoch
}

/// The enrolment of a device by a member (`Docs/Protocol.md`, "Membership"): the joiner asks, the
/// inviter checks and countersigns, the joiner checks the reply.
package enum JoinRequest {
  /// Makes the joiner's certificate, signed by itself.
  package static func make(
    account: AccountID, keys: DeviceKeys, name: String, issued: UInt64
  ) throws(JoinError) -> Record {
    guard let certificate = Certificate(of: keys, name: name, issued: issued),
      let record = try? Record(body: RecordBody.encode(certificate), signatures: [])
    else { throw .invalidName }
    return record.signed(by: keys.signing, account: account)
  }

  /// Checks a request on the inviter's side, and returns its certificate if it may be signed.
  package static func verify(
    _ request: Record, roster: Roster
  ) throws(JoinError) -> Certificate {
    guard case .certificate(let certificate) = request.kind else { throw .notACertificate }
    let valid = request.validSignatures(account: roster.account)
    guard valid.contains(where: { $0.signer == certificate.device }) else {
      throw .notSelfSigned
    }
    guard !roster.isRevoked(certificate.device) else { throw .revoked }
    if let known = roster.certificate(of: certificate.device) {
      guard known.hasSameKeys(as: certificate) else { throw .keysInUse }
    } else {
      guard !roster.knows(transportKey: certificate.transportKey),
        certificate.device != roster.genesis?.recoverySigningKey
      else { throw .keysInUse }
    }
    guard !roster.isMistakable(certificate.name, of: certificate.device) else {
      throw .mistakableName
    }
    return certificate
  }

  /// Makes the inviter's new records for a confirmed request: the countersigned certificate, and
  /// lockboxes for its newest open epochs (``MembershipLimits/epochsAtJoining``), newest first.
  package static func accept(
    _ request: Record, roster: Roster, keyring: Keyring, keys: DeviceKeys,
    entropy: inout some Entropy
  ) throws(JoinError) -> [Record] {
    let certificate = try verify(request, roster: roster)
    guard roster.isMember(keys.id), keyring.current != nil,
      roster.hasRoomForDevice || roster.certificate(of: certificate.device) != nil
    else { throw .inviterCannotInvite }
    let lockboxes = keyring.lockboxes(
      for: certificate, account: roster.account, keys: keys, entropy: &entropy)
    guard !lockboxes.isEmpty else { throw .invalidKeys }
    let valid = request.validSignatures(account: roster.account)
      .filter { $0.signer == certificate.device }
    let signed = request.with(signatures: valid)
      .signed(by: keys.signing, account: roster.account)
    return [signed] + lockboxes
  }

  /// Checks a reply on the joiner's side, and returns the account's roster and a keyring with the
  /// current epoch open.
  package static func check(
    _ reply: JoinReply, invitation: Invitation, keys: DeviceKeys
  ) throws(JoinError) -> (roster: Roster, keyring: Keyring) {
    guard reply.isAccepted else { throw .declined }
    var roster = Roster(account: invitation.account)
    _ = roster.learn(all: reply.records)
    guard roster.genesis != nil else { throw .wrongAccount }
    guard roster.isMember(invitation.device) else { throw .inviterNotMember }
    guard roster.isMember(keys.id), let mine = roster.certificate(of: keys.id),
      mine.boxKey == keys.boxPublicKey, mine.transportKey == keys.transportPublicKey
    else { throw .notMember }
    var keyring = Keyring()
    keyring.refresh(from: roster, keys: keys)
    guard keyring.current != nil else { throw .noEpoch }
    return (roster, keyring)
  }
}
