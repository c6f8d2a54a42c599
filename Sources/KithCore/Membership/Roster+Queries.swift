package import KithCrypto

extension Roster {
  /// The genesis; nil until it is learnt.
  package var genesis: Genesis? { membership.genesis }

  /// The certificates of all members, ascending by device.
  ///
  /// - Complexity: O(*n* log *n*).
  package var sortedMembers: [Certificate] {
    membership.paths.keys.filter { isMember($0) }.sorted().compactMap { certificate(of: $0) }
  }

  /// Returns whether the device is a member now.
  ///
  /// - Complexity: O(1).
  package func isMember(_ device: DeviceID) -> Bool { membership.isMember(device) }

  /// Returns the certificate of a device that is or was a member.
  ///
  /// - Complexity: O(1).
  package func certificate(of device: DeviceID) -> Certificate? {
    membership.certificates[device]
  }

  /// Returns the name of a device that is or was a member: the latest that a member gave it, or its
  /// certificate's.
  ///
  /// - Complexity: O(1).
  package func name(of device: DeviceID) -> String? {
    certificate(of: device).map { membership.names[device] ?? $0.name }
  }

  /// Returns the member with this Noise static key. Several certificates may claim a key: the
  /// device that the handshake named counts, otherwise the smallest id.
  ///
  /// - Complexity: O(*n*).
  package func device(
    withTransportKey key: TransportPublicKey, named name: DeviceID? = nil
  ) -> DeviceID? {
    devices(withTransportKey: key, named: name).filter(isMember).min()
  }

  /// Returns the revoked device with this Noise static key, if no member has it; of several as
  /// above.
  ///
  /// - Complexity: O(*n*).
  package func revokedDevice(
    withTransportKey key: TransportPublicKey, named name: DeviceID? = nil
  ) -> DeviceID? {
    let devices = devices(withTransportKey: key, named: name)
    return devices.contains(where: isMember) ? nil : devices.filter(isRevoked).min()
  }

  func devices(
    withTransportKey key: TransportPublicKey, named name: DeviceID?
  ) -> [DeviceID] {
    if let name {
      return membership.certificates[name]?.transportKey == key ? [name] : []
    }
    return membership.certificates.values.filter { $0.transportKey == key }.map(\.device)
  }

  /// Returns whether a device that is or was a member has this Noise static key.
  ///
  /// - Complexity: O(*n*).
  func knows(transportKey key: TransportPublicKey) -> Bool {
    membership.certificates.values.contains { $0.transportKey == key }
  }

  /// Returns whether the device is the first one, named in the genesis.
  package func isCreator(_ device: DeviceID) -> Bool {
    membership.genesis?.firstDevice.device == device
  }

  /// Returns whether the recovery key certified the device after the genesis.
  package func wasCertifiedByRecoveryKey(_ device: DeviceID) -> Bool {
    membership.recovered.contains(device)
  }

  /// Returns the key, a device's or the recovery key's, whose signature makes or made a device a
  /// member, on a shortest path. Nil without a path.
  ///
  /// - Complexity: O(1).
  package func enroller(of device: DeviceID) -> SigningPublicKey? {
    membership.paths[device]?.signer
  }

  /// Returns whether a key is the account's recovery key.
  package func isRecoveryKey(_ key: SigningPublicKey) -> Bool { membership.isRecoveryKey(key) }

  /// The revoked devices, ascending.
  package var sortedRevoked: [DeviceID] { membership.revoked.sorted() }

  /// Returns a device's revokers and the earliest date, in milliseconds since 1970. Nil if it is
  /// not revoked.
  package func revocation(of device: DeviceID) -> (by: [DeviceID], issued: UInt64)? {
    let all = membership.revocations[device] ?? []
    return all.min { ($0.issued, $0.record) < ($1.issued, $1.record) }
      .map { ($0.revokers, $0.issued) }
  }

  /// Returns the records that revoke a device, ascending by id. A revoked device is sent no others.
  package func revocationRecords(of device: DeviceID) -> [Record] {
    (membership.revocations[device] ?? []).map(\.record).sorted().compactMap { record($0) }
  }

  /// The known devices that are neither revoked nor members, because their enroller was revoked
  /// without listing them; ascending.
  var orphans: [DeviceID] {
    membership.certificates.keys.filter { !isMember($0) && !isRevoked($0) }.sorted()
  }

  /// Whether another device fits without dropping one that is or was a member.
  ///
  /// - Complexity: O(1).
  var hasRoomForDevice: Bool { membership.paths.count <= MembershipLimits.certificates }

  /// Returns whether the device is revoked; revoked ids never return.
  package func isRevoked(_ device: DeviceID) -> Bool { membership.revoked.contains(device) }

  /// The digest that handshakes compare: over the account, and the ids and signatures
  /// of ``records``.
  ///
  /// - Complexity: O(*r*).
  package var digest: Digest256 {
    var hasher = Blake2b.Hasher()
    hasher.update(Array("kith roster v1".utf8) + [0])
    hasher.update(account.digest)
    for record in records {
      hasher.update(record.id)
      hasher.update([UInt8(truncatingIfNeeded: record.signatures.count)])
      for signature in record.signatures {
        hasher.update(signature.signer)
        hasher.update(signature.signature)
      }
    }
    return hasher.digest256()
  }
}
