public import KithCrypto

extension Roster {
  /// What the genesis says; nil while it has not come.
  public var genesis: Genesis? { membership.genesis }

  /// The certificates of all members, ascending by device.
  ///
  /// - Complexity: O(*n* log *n*).
  public var sortedMembers: [Certificate] {
    membership.paths.keys.filter { isMember($0) }.sorted().compactMap { certificate(of: $0) }
  }

  /// Whether the device is one of the account's now.
  ///
  /// - Complexity: O(1).
  public func isMember(_ device: DeviceID) -> Bool { membership.isMember(device) }

  /// The certificate of a device that is a member or was one.
  ///
  /// - Complexity: O(1).
  public func certificate(of device: DeviceID) -> Certificate? {
    membership.certificates[device]
  }

  /// What people call a device that is a member or was one: what a member called it last, or what
  /// its certificate says.
  ///
  /// - Complexity: O(1).
  public func name(of device: DeviceID) -> String? {
    certificate(of: device).map { membership.names[device] ?? $0.name }
  }

  /// The member whose Noise static key this is. Anybody can have a device certified that claims
  /// another's key; so of several the one counts that whoever holds the key calls itself in the
  /// handshake, and the smallest id where it says nothing.
  ///
  /// - Complexity: O(*n*).
  public func device(
    withTransportKey key: TransportPublicKey, named name: DeviceID? = nil
  ) -> DeviceID? {
    devices(withTransportKey: key, named: name).filter(isMember).min()
  }

  /// The revoked device whose Noise static key this was, where it is not a member's; of several as
  /// above.
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

  /// Whether any device that is or was a member's has this Noise static key.
  ///
  /// - Complexity: O(*n*).
  func knows(transportKey key: TransportPublicKey) -> Bool {
    membership.certificates.values.contains { $0.transportKey == key }
  }

  /// Whether the device is the first one, which the genesis names.
  public func isCreator(_ device: DeviceID) -> Bool {
    membership.genesis?.firstDevice.device == device
  }

  /// Whether the recovery key certified the device after the genesis.
  public func wasCertifiedByRecoveryKey(_ device: DeviceID) -> Bool {
    membership.recovered.contains(device)
  }

  /// Whose signature makes a device a member, or did: a device's or the recovery key's, on a
  /// shortest path; nil for who has no path.
  ///
  /// - Complexity: O(1).
  public func enroller(of device: DeviceID) -> SigningPublicKey? {
    membership.paths[device]?.signer
  }

  /// Whether a key is the account's recovery key.
  public func isRecoveryKey(_ key: SigningPublicKey) -> Bool { membership.isRecoveryKey(key) }

  /// Devices that are revoked, ascending.
  public var sortedRevoked: [DeviceID] { membership.revoked.sorted() }

  /// Who revoked a device and when, in milliseconds since 1970: the earliest revocation by what it
  /// says itself; nil for who is not revoked.
  public func revocation(of device: DeviceID) -> (by: [DeviceID], issued: UInt64)? {
    let all = membership.revocations[device] ?? []
    return all.min { ($0.issued, $0.record) < ($1.issued, $1.record) }
      .map { ($0.revokers, $0.issued) }
  }

  /// The records that revoke a device, ascending by id: all that it is sent once it is revoked.
  package func revocationRecords(of device: DeviceID) -> [Record] {
    (membership.revocations[device] ?? []).map(\.record).sorted().compactMap { record($0) }
  }

  /// Devices that are known, not revoked, and no members, for whoever enrolled them was revoked
  /// without listing them; ascending.
  var orphans: [DeviceID] {
    membership.certificates.keys.filter { !isMember($0) && !isRevoked($0) }.sorted()
  }

  /// Whether one more device pushes out none that is a member or was revoked.
  ///
  /// - Complexity: O(1).
  var hasRoomForDevice: Bool { membership.paths.count <= MembershipLimits.certificates }

  /// Whether the device was thrown out; revoked ids never return.
  public func isRevoked(_ device: DeviceID) -> Bool { membership.revoked.contains(device) }

  /// The digest that handshakes compare: over the account, and ids and signatures of
  /// ``records``.
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
