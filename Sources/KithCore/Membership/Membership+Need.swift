internal import KithCrypto

extension Membership {
  /// Returns the certificates by need; a full roster drops the last.
  ///
  /// 1. Those that paths consist of, and those of shortest ways to the revokers of devices with a
  ///    path, so that the revocations count.
  /// 2. Further certificates of devices with a path.
  /// 3. Those of devices that only revoked devices vouch for.
  ///
  /// In each part those nearer to the genesis come first, then smaller ids. So no certificate
  /// depends on a later one.
  ///
  /// `records` are this membership's, ascending by id.
  ///
  /// - Complexity: O(*r* log *r*), and O(*d*) for each revocation, in a longest path of *d*.
  func certificatesByNeed(in records: [Record]) -> [Record] {
    let steps = firstSteps(in: records)
    var need: [Digest256: Int] = [:]
    for path in paths.values { need[path.record] = path.length }
    for (device, all) in revocations where paths[device] != nil {
      let kept = all.sorted { $0.record < $1.record }.prefix(MembershipLimits.revocationsOfDevice)
      for revoker in kept.flatMap(\.revokers) {
        var current = revoker
        while let step = steps[current], need[step.record] ?? .max > step.length {
          need[step.record] = step.length
          current = step.signer
        }
      }
    }
    func rank(_ record: Record, of device: DeviceID) -> (Int, Int) {
      if let length = need[record.id] { return (0, length) }
      return (paths[device] == nil ? 2 : 1, steps[device]?.length ?? .max)
    }
    return records.compactMap { record in
      guard case .certificate(let certificate) = record.kind, attached.contains(record.id) else {
        return nil
      }
      return (rank(record, of: certificate.device), record)
    }
    .sorted { (left: ((Int, Int), Record), right: ((Int, Int), Record)) in
      (left.0.0, left.0.1, left.1.id) < (right.0.0, right.0.1, right.1.id)
    }
    .map(\.1)
  }

  /// Returns the last step of a shortest path to each device, ignoring revocations.
  private func firstSteps(in records: [Record]) -> [DeviceID: Path] {
    guard let genesis else { return [:] }
    var made: [SigningPublicKey: [(device: DeviceID, record: Digest256)]] = [:]
    for record in records where attached.contains(record.id) {
      guard case .certificate(let certificate) = record.kind else { continue }
      for signer in record.signers where signer != certificate.device {
        made[signer, default: []].append((certificate.device, record.id))
      }
    }
    var steps: [DeviceID: Path] = [:]
    var frontier = [genesis.recoverySigningKey, genesis.firstDevice.device]
    var length = 0
    while !frontier.isEmpty {
      length += 1
      var next: [DeviceID: Path] = [:]
      for signer in frontier {
        for (device, record) in made[signer] ?? []
        where steps[device] == nil && device != genesis.firstDevice.device {
          guard next[device].map({ record < $0.record }) ?? true else { continue }
          next[device] = Path(signer: signer, record: record, length: length)
        }
      }
      steps.merge(next) { old, _ in old }
      // In order, since the first signer of a record counts, alike on every device.
      frontier = next.keys.sorted()
    }
    return steps
  }
}
