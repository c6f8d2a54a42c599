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

/// Records that prove a path, and those for a joining device.
extension Roster {
  /// Returns the records that prove a member's path: the genesis, then each certificate with its
  /// two necessary signatures. Empty for others, or beyond ``MembershipLimits/strangerBytes``.
  package func chain(of device: DeviceID) -> [Record] {
    guard isMember(device), let genesis = record(account.digest) else { return [] }
    var steps: [Record] = []
    var current = device
    while !isCreator(current) {
      guard let path = membership.paths[current], let record = record(path.record),
        steps.count < MembershipLimits.records
      else { return [] }
      steps.append(
        record.with(
          signatures: record.signatures.filter {
            $0.signer == current || $0.signer == path.signer
          }))
      if membership.isRecoveryKey(path.signer) { break }
      current = path.signer
    }
    let chain = [genesis] + steps.reversed()
    return chain.map(Self.size).reduce(0, +) <= MembershipLimits.strangerBytes ? chain : []
  }

  /// Returns the records for a joining device if the roster exceeds its reply: the device's chain,
  /// which holds its inviter's; the chain of the newest epoch's signer, without which the epoch does
  /// not count; then as much of the rest as fits in ``MembershipLimits/strangerBytes``.
  package func recordsForJoiner(_ joiner: DeviceID) -> [Record] {
    let rest = rest(for: joiner)
    let epoch = rest.first { if case .epoch = $0.kind { true } else { false } }
    let signed = epoch?.signers.lazy.map(chain).first { !$0.isEmpty } ?? []
    var sent = Set<Digest256>()
    var remaining = MembershipLimits.strangerBytes
    return (chain(of: joiner) + signed + rest).filter { record in
      let size = Self.size(record)
      guard size <= remaining, sent.insert(record.id).inserted else { return false }
      remaining -= size
      return true
    }
  }

  /// Returns the revocations of a known device that is not a member, and of all enrollers above it.
  /// Empty for an unknown key.
  ///
  /// - Complexity: O(*r*) for each step.
  func revocationsAbove(transportKey: TransportPublicKey, named name: DeviceID?) -> [Record] {
    var above = Set(devices(withTransportKey: transportKey, named: name).filter { !isMember($0) })
    var next = above
    while !next.isEmpty {
      let signers = next.flatMap { device in
        membership.enrolled.filter { $0.value.contains(device) }.map(\.key)
      }
      next = Set(signers).subtracting(above)
      above.formUnion(next)
    }
    return above.filter(isRevoked).sorted().flatMap(revocationRecords)
  }

  /// Counts the field's number and length too.
  private static func size(_ record: Record) -> Int { record.encoded.count + 4 }

  /// Returns the records in the order in which a joining device needs them: the epochs that it can
  /// open, newest first, each with its lockbox; then revocations, other epochs, their lockboxes,
  /// certificates and names.
  private func rest(for joiner: DeviceID) -> [Record] {
    let generations = Dictionary(
      epochRecords.map { ($0.epoch.id, $0.epoch.generation) }, uniquingKeysWith: max)
    let boxes = Set(
      records.compactMap { record -> EpochID? in
        guard case .lockbox(let box) = record.kind, box.secret.device == joiner else { return nil }
        return box.epoch
      })
    func rank(_ record: Record) -> (Int, UInt32) {
      switch record.kind {
      case .epoch(let epoch):
        let opens =
          boxes.contains(epoch.id) || epoch.recipients.contains { $0.device == joiner }
        return (opens ? 0 : 2, .max - epoch.generation)
      case .lockbox(let box):
        return (box.secret.device == joiner ? 0 : 3, .max - (generations[box.epoch] ?? 0))
      case .revocation: return (1, 0)
      case .genesis, .certificate: return (4, 0)
      case .rename: return (5, 0)
      case .unknown: return (6, 0)
      }
    }
    return records.map { (rank: rank($0), record: $0) }
      .sorted { ($0.rank.0, $0.rank.1, $0.record.id) < ($1.rank.0, $1.rank.1, $1.record.id) }
      .map(\.record)
  }
}
