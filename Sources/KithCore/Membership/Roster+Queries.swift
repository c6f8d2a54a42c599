package import KithCrypto

extension Roster {
  /// Nil until it is learnt.
  package var genesis: Genesis? { membership.genesis }

  /// The members' certificates, ascending by device.
  ///
  /// - Complexity: O(*n* log *n*).
  package var sortedMembers: [Certificate] {
    membership.paths.keys.filter { isMember($0) }.sorted().compactMap { certificate(of: $0) }
  }

  package func isMember(_ device: DeviceID) -> Bool { membership.isMember(device) }

  /// Returns the certificate of a member or former member.
  package func certificate(of device: DeviceID) -> Certificate? {
    membership.certificates[device]
  }

  /// Returns the latest name that a member gave the device, or its certificate's. Nil if the device
  /// is unknown.
  package func name(of device: DeviceID) -> String? {
    certificate(of: device).map { membership.names[device] ?? $0.name }
  }

  /// Returns the member with this Noise static key. Several certificates may claim a key: the
  /// device named in the handshake counts, otherwise the smallest id.
  ///
  /// - Complexity: O(*n*).
  package func device(
    withTransportKey key: TransportPublicKey, named name: DeviceID? = nil
  ) -> DeviceID? {
    devices(withTransportKey: key, named: name).filter(isMember).min()
  }

  /// Returns the revoked device with this key, if no member has it; of several as above.
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

  /// Returns whether a member or former member has this key.
  ///
  /// - Complexity: O(*n*).
  func knows(transportKey key: TransportPublicKey) -> Bool {
    membership.certificates.values.contains { $0.transportKey == key }
  }

  package func isCreator(_ device: DeviceID) -> Bool {
    membership.genesis?.firstDevice.device == device
  }

  /// Returns the signer, a device or the recovery key, of the last step of a shortest path. Nil
  /// without a path.
  package func enroller(of device: DeviceID) -> SigningPublicKey? {
    membership.paths[device]?.signer
  }

  /// Returns the member that answers for a device's load: of the devices on its path, itself
  /// included, the one next to the creator or the recovery key. A device can certify any number of
  /// others, and they answer together; so do not those that the creator certified.
  ///
  /// - Complexity: O(*n*) in the steps of the path.
  package func branch(of device: DeviceID) -> DeviceID {
    var branch = device
    while let signer = enroller(of: branch), signer != branch, !isCreator(signer),
      !isRecoveryKey(signer)
    {
      branch = signer
    }
    return branch
  }

  package func isRecoveryKey(_ key: SigningPublicKey) -> Bool { membership.isRecoveryKey(key) }

  package var sortedRevoked: [DeviceID] { membership.revoked.sorted() }

  /// Returns the earliest revocation: its signers, and its date in milliseconds since 1970.
  package func revocation(of device: DeviceID) -> (by: [DeviceID], issued: UInt64)? {
    let all = membership.revocations[device] ?? []
    return all.min { ($0.issued, $0.record) < ($1.issued, $1.record) }
      .map { ($0.revokers, $0.issued) }
  }

  /// Ascending by id. A revoked device is sent no other records.
  package func revocationRecords(of device: DeviceID) -> [Record] {
    (membership.revocations[device] ?? []).map(\.record).sorted().compactMap { record($0) }
  }

  /// The known devices that are neither revoked nor members, ascending.
  var orphans: [DeviceID] {
    membership.certificates.keys.filter { !isMember($0) && !isRevoked($0) }.sorted()
  }

  /// Whether another device fits without dropping a member or former member.
  var hasSpaceForDevice: Bool { membership.paths.count <= MembershipLimits.certificates }

  /// Revoked ids never return.
  package func isRevoked(_ device: DeviceID) -> Bool { membership.revoked.contains(device) }
}
