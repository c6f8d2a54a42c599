internal import KithCrypto

extension Roster {
  /// Returns the records that prove a member's path: the genesis, then each certificate with its
  /// two necessary signatures. Empty for others, or beyond 16 KiB
  /// (``MembershipLimits/strangerBytes``).
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

  /// Returns the records for a joining device if the roster exceeds its reply: the chain of
  /// `device`, which is this one, then as much as fits in 16 KiB of: epoch secrets sealed to
  /// `peer`, newest first, revocations, other epochs newest first, the rest by id.
  package func recordsForJoiner(device: DeviceID, peer: DeviceID) -> [Record] {
    let chain = chain(of: device)
    var sent = Set(chain.map(\.id))
    var room = MembershipLimits.strangerBytes - chain.map(Self.size).reduce(0, +)
    var result = chain
    for record in rest(for: peer) where !sent.contains(record.id) {
      let size = Self.size(record)
      guard size <= room else { continue }
      room -= size
      sent.insert(record.id)
      result.append(record)
    }
    return result
  }

  /// Returns the records that removed the paths of a known device that is not a member: revocations
  /// of itself and its enrollers, step by step. Empty for an unknown key.
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

  /// Returns the size of a record inside a message: its bytes, its field's number and length.
  private static func size(_ record: Record) -> Int { record.encoded.count + 4 }

  private func rest(for peer: DeviceID) -> [Record] {
    let generations = Dictionary(
      epochRecords.map { ($0.epoch.id, $0.epoch.generation) }, uniquingKeysWith: max)
    func rank(_ record: Record) -> (Int, UInt32) {
      switch record.kind {
      case .epoch(let epoch):
        let isForPeer = epoch.recipients.contains { $0.device == peer }
        return (isForPeer ? 0 : 2, .max - epoch.generation)
      case .lockbox(let lockbox):
        // Directly after its epoch, whose record it needs.
        return (lockbox.secret.device == peer ? 0 : 3, .max - (generations[lockbox.epoch] ?? 0))
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
