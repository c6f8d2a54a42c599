internal import KithCrypto

extension Roster {
  /// Makes the record that renames a device, dated `time` (milliseconds since 1970), but always
  /// after the rename that it replaces.
  func renaming(
    _ device: DeviceID, to name: String, at time: UInt64, keys: DeviceKeys
  ) throws(MembershipError) -> Record {
    guard isMember(keys.id) else { throw .notAMember }
    guard certificate(of: device) != nil else { throw .unknownDevice }
    guard Certificate.isValidName(name) else { throw .invalidName }
    guard !isMistakable(name, of: device) else { throw .mistakableName }
    let known = records.compactMap { record -> UInt64? in
      guard case .rename(let rename) = record.kind, rename.device == device else { return nil }
      return rename.issued
    }
    let last = known.max() ?? 0
    return try signed(
      RecordBody.encode(
        RenameRecord(device: device, name: name, issued: max(time, last &+ (last < .max ? 1 : 0)))),
      by: keys)
  }

  /// Returns whether people would mistake the name for that of another member.
  func isMistakable(_ name: String, of device: DeviceID) -> Bool {
    sortedMembers.contains { member in
      guard member.device != device, let other = self.name(of: member.device) else { return false }
      return NameLikeness.areMistakable(name, other)
    }
  }

  /// Returns the devices that are members only through another one, ascending. They are revoked
  /// with it unless its revocation lists them.
  ///
  /// - Complexity: as for ``Membership``.
  package func dependents(of device: DeviceID) -> [DeviceID] {
    guard let genesis else { return [] }
    let body = RecordBody.encode(RevocationRecord(device: device, keeps: [], issued: 0))
    // ``Membership`` does not check signatures.
    let signature = RecordSignature(
      signer: genesis.firstDevice.device, signature: Signature(storage: .init()))
    guard let trial = try? Record(body: body, signatures: [signature]) else { return [] }
    let then = Membership(of: (records + [trial]).sorted { $0.id < $1.id })
    return sortedMembers.map(\.device).filter { $0 != device && !then.isMember($0) }
  }

  /// Makes the records that revoke a device and its ``dependents(of:)``, except `staying` and this
  /// device.
  func revoking(
    _ device: DeviceID, keeping staying: Set<DeviceID>, at time: UInt64, keys: DeviceKeys
  ) throws(MembershipError) -> [Record] {
    guard isMember(keys.id) else { throw .notAMember }
    guard device != keys.id else { throw .ownDevice }
    guard certificate(of: device) != nil else { throw .unknownDevice }
    guard !isRevoked(device) else { throw .alreadyRevoked }
    let leaving = Set(dependents(of: device)).subtracting(staying).subtracting([keys.id])
      .union([device])
    var records: [Record] = []
    for gone in leaving.sorted() {
      // A revoked device is listed if a staying one is a member through it.
      let keeps = membership.enrolled[gone, default: []].sorted().filter {
        leads($0, leaving: leaving)
      }
      guard keeps.count <= MembershipLimits.keeps else { throw .tooManyRecords }
      records.append(
        try signed(
          RecordBody.encode(RevocationRecord(device: gone, keeps: keeps, issued: time)), by: keys))
    }
    return records
  }

  /// Revokes the orphans, so that all devices treat their data alike, even if more records come
  /// later.
  func revokingOrphans(at time: UInt64, keys: DeviceKeys) -> [Record] {
    guard isMember(keys.id) else { return [] }
    return orphans.compactMap { orphan in
      let body = RecordBody.encode(RevocationRecord(device: orphan, keeps: [], issued: time))
      return try? signed(body, by: keys)
    }
  }

  /// Returns whether the device stays, or one that is a member through it.
  private func leads(_ device: DeviceID, leaving: Set<DeviceID>) -> Bool {
    var seen: Set<DeviceID> = []
    var waiting = [device]
    while let next = waiting.popLast() {
      guard seen.insert(next).inserted else { continue }
      if isMember(next), !leaving.contains(next) { return true }
      waiting += membership.enrolled[next, default: []]
    }
    return false
  }

  private func signed(_ body: [UInt8], by keys: DeviceKeys) throws(MembershipError) -> Record {
    guard let record = try? Record(body: body, signatures: []) else { throw .tooManyRecords }
    return record.signed(by: keys.signing, account: account)
  }
}
