public import KithCrypto

extension Roster {
  /// The genesis; nil until it is learnt.
  public var genesis: Genesis? { membership.genesis }

  /// The certificates of all members, ascending by device.
  ///
  /// - Complexity: O(*n* log *n*).
  public var sortedMembers: [Certificate] {
    membership.paths.keys.filter { isMember($0) }.sorted().compactMap { certificate(of: $0) }
  }

  /// Returns whether the device is a member now.
  ///
  /// - Complexity: O(1).
  public func isMember(_ device: DeviceID) -> Bool { membership.isMember(device) }

  /// Returns the certificate of a device that is or was a member.
  ///
  /// - Complexity: O(1).
  public func certificate(of device: DeviceID) -> Certificate? {
    membership.certificates[device]
  }

  /// Returns the name of a device that is or was a member: the latest that a member gave it, or
  /// that of its certificate.
  ///
  /// - Complexity: O(1).
  public func name(of device: DeviceID) -> String? {
    certificate(of: device).map { membership.names[device] ?? $0.name }
  }

  /// Returns the member with this Noise static key. Several certificates may claim one key, because
  /// a device may be certified with another's. The handshake names the device: use that one, or the
  /// smallest id if it names none.
  ///
  /// - Complexity: O(*n*).
  public func device(
    withTransportKey key: TransportPublicKey, named name: DeviceID? = nil
  ) -> DeviceID? {
    devices(withTransportKey: key, named: name).filter(isMember).min()
  }

  /// Returns the revoked device with this Noise static key, if no member has it. Several are
  /// resolved as above.
  ///
  /// - Complexity: O(*n*).
  public func revokedDevice(
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
  public func isCreator(_ device: DeviceID) -> Bool {
    membership.genesis?.firstDevice.device == device
  }

  /// Returns whether the recovery key certified the device after the genesis.
  public func wasCertifiedByRecoveryKey(_ device: DeviceID) -> Bool {
    membership.recovered.contains(device)
  }

  /// Returns the key whose signature makes, or made, a device a member: a device's or the recovery
  /// key's, on a shortest path. Nil if the device has no path.
  ///
  /// - Complexity: O(1).
  public func enroller(of device: DeviceID) -> SigningPublicKey? {
    membership.paths[device]?.signer
  }

  /// Returns whether a key is the account's recovery key.
  public func isRecoveryKey(_ key: SigningPublicKey) -> Bool { membership.isRecoveryKey(key) }

  /// The revoked devices, ascending.
  public var sortedRevoked: [DeviceID] { membership.revoked.sorted() }

  /// Returns the revokers of a device and the time, in milliseconds since 1970, of the earliest
  /// dated revocation. Nil if the device is not revoked.
  public func revocation(of device: DeviceID) -> (by: [DeviceID], issued: UInt64)? {
    let all = membership.revocations[device] ?? []
    return all.min { ($0.issued, $0.record) < ($1.issued, $1.record) }
      .map { ($0.revokers, $0.issued) }
  }

  /// Returns the records that revoke a device, ascending by id. A revoked device is sent no others.
  package func revocationRecords(of device: DeviceID) -> [Record] {
    (membership.revocations[device] ?? []).map(\.record).sorted().compactMap { record($0) }
  }

  /// The devices that are known, not revoked and not members, because their enroller was revoked
  /// without listing them; ascending.
  var orphans: [DeviceID] {
    membership.certificates.keys.filter { !isMember($0) && !isRevoked($0) }.sorted()
  }

  /// Whether another device fits without pushing out one that is or was a member.
  ///
  /// - Complexity: O(1).
  var hasRoomForDevice: Bool { membership.paths.count <= MembershipLimits.certificates }

  /// Returns whether the device is revoked; revoked ids never return.
  public func isRevoked(_ device: DeviceID) -> Bool { membership.revoked.contains(device) }

  /// The digest that handshakes compare: over the account, and the ids and signatures
  /// of ``records``.
  ///
  /// - Complexity: O(*r*).
  public var digest: Digest256 {
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
