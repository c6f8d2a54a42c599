package import KithCrypto

/// The error of a failed join, which leaves both sides unchanged.
package enum JoinError: Error, Hashable, Sendable {
  case notACertificate
  case notSelfSigned
  /// Another device has the device id or the transport key.
  case keysInUse
  /// It needs new keys.
  case revoked
  /// The name fails ``Certificate/isValidName(_:)``.
  case invalidName
  /// The name looks like a member's, but differs.
  case mistakableName
  /// A key is of low order: data cannot be sealed to it.
  case invalidKeys
  /// The inviter is not a member or has no current epoch, or the roster has no space for another
  /// device.
  case inviterCannotInvite
  case declined
  /// The reply lacks the genesis of the invitation's account.
  case wrongAccount
  case inviterNotMember
  /// The reply does not make this device a member with its keys.
  case notMember
  /// No current epoch opens with this device's keys.
  case noEpoch
}

/// The enrolment of a device by a member (`Docs/Protocol/pairing.md`, "Inviting"): the joiner asks,
/// the inviter checks and countersigns, the joiner checks the reply.
package enum JoinRequest {
  /// Makes the joiner's self-signed certificate.
  package static func make(
    account: AccountID, keys: DeviceKeys, name: String, issued: UInt64
  ) throws(JoinError) -> Record {
    guard let certificate = Certificate(of: keys, name: name, issued: issued),
      let record = try? Record(body: RecordBody.encode(certificate), signatures: [])
    else { throw .invalidName }
    return record.signed(by: keys.signing, account: account)
  }

  /// Checks a request for the inviter, and returns the certificate to sign.
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

  /// Makes the records of a confirmed request: the countersigned certificate, and lockboxes for the
  /// newest ``MembershipLimits/epochsAtJoining`` open epochs, newest first.
  package static func accept(
    _ request: Record, roster: Roster, keyring: Keyring, keys: DeviceKeys,
    entropy: inout some Entropy
  ) throws(JoinError) -> [Record] {
    let certificate = try verify(request, roster: roster)
    guard roster.isMember(keys.id), keyring.current != nil,
      roster.hasSpaceForDevice || roster.certificate(of: certificate.device) != nil
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

  /// Checks a reply for the joiner. The returned keyring has the current epoch open.
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
