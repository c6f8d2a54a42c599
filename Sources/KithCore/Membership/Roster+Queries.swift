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

  /// The member whose Noise static key this is; the smallest id where several claim it.
  ///
  /// - Complexity: O(*n*).
  public func device(withTransportKey key: TransportPublicKey) -> DeviceID? {
    membership.certificates.values.lazy
      .filter { $0.transportKey == key && isMember($0.device) }
      .map(\.device).min()
  }

  /// The revoked device whose Noise static key this was; the smallest id where several claim it.
  ///
  /// - Complexity: O(*n*).
  public func revokedDevice(withTransportKey key: TransportPublicKey) -> DeviceID? {
    membership.certificates.values.lazy
      .filter { $0.transportKey == key && isRevoked($0.device) }
      .map(\.device).min()
  }

  /// Whether the device is the first one, which the genesis names.
  public func isCreator(_ device: DeviceID) -> Bool {
    membership.genesis?.firstDevice.device == device
  }

  /// Whether the recovery key certified the device after the genesis.
  public func wasCertifiedByRecoveryKey(_ device: DeviceID) -> Bool {
    membership.recovered.contains(device)
  }

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
