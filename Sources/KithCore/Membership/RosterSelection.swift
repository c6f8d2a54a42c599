internal import KithCrypto

/// Chooses the attached records that a full roster keeps (`Docs/Decisions/roster-bounds.md`).
///
/// While the members stay, the order of two records does not depend on others. So a dropped record
/// would be dropped again, and rosters that dropped different ones agree after an exchange.
struct RosterSelection {
  /// Ascending by id.
  private(set) var kept: [Record]
  /// Attached records beyond the limits; of each kind, the next in order first.
  private(set) var excess: [Record] = []
  private(set) var membership: Membership

  /// - Parameters:
  ///   - records: with valid signatures, ascending by id.
  ///   - membership: that follows from them.
  /// - Complexity: O(*r*) if there is space, otherwise as for ``Membership``.
  init(of records: [Record], _ membership: Membership) {
    let attached = records.filter { membership.attached.contains($0.id) }
    kept = attached
    self.membership = membership
    // Each choice depends on those before it.
    give(up: excessCertificates(records))
    give(up: excessRevocations())
    give(
      up: excessRecords(atMost: MembershipLimits.epochs, keepingEnds: true) { $0.generationOfEpoch }
    )
    let generations = Dictionary(
      kept.compactMap { record in
        if case .epoch(let epoch) = record.kind {
          (epoch.id, UInt64(epoch.generation))
        } else {
          nil
        }
      }, uniquingKeysWith: max)
    give(
      up: excessRecords(atMost: MembershipLimits.lockboxes, keepingEnds: true) { record in
        guard case .lockbox(let lockbox) = record.kind else { return nil }
        return generations[lockbox.epoch] ?? 0
      })
    give(
      up: excessRecords(atMost: MembershipLimits.renames) { record in
        if case .rename(let rename) = record.kind { rename.issued } else { nil }
      })
    give(
      up: excessRecords(atMost: MembershipLimits.unknownRecords) { record in
        if case .unknown = record.kind { 0 } else { nil }
      })
    let ids = Set(kept.map(\.id) + excess.map(\.id))
    // Records attached only through dropped ones.
    excess += attached.filter { !ids.contains($0.id) }
  }

  private mutating func give(up records: [Record]) {
    guard !records.isEmpty else { return }
    let ids = Set(records.map(\.id))
    excess += records
    let rest = kept.filter { !ids.contains($0.id) }
    membership = Membership(of: rest)
    kept = rest.filter { membership.attached.contains($0.id) }
  }

  private func excessCertificates(_ records: [Record]) -> [Record] {
    guard kept.count > MembershipLimits.certificates,
      kept.count(where: \.isCertificate) > MembershipLimits.certificates
    else { return [] }
    return Array(
      membership.certificatesByNeed(in: records).dropFirst(MembershipLimits.certificates))
  }

  /// Keeps the smallest ids of each device, so that lack of space never makes a revoked device a
  /// member.
  private func excessRevocations() -> [Record] {
    var counts: [DeviceID: Int] = [:]
    return kept.filter { record in
      guard case .revocation(let revocation) = record.kind else { return false }
      counts[revocation.device, default: 0] += 1
      return counts[revocation.device, default: 0] > MembershipLimits.revocationsOfDevice
    }
  }

  /// Returns the records of one kind beyond its limit; `value` is nil for other kinds.
  ///
  /// Members' records precede those of revoked devices, which get at most a share. Signers take
  /// turns, so none displaces one that needs less. Each signer's order is by `value` from the
  /// highest, then by id; with `keepingEnds`, from both ends inwards.
  private func excessRecords(
    atMost limit: Int, keepingEnds: Bool = false, value: (Record) -> UInt64?
  ) -> [Record] {
    let all = kept.compactMap { record in value(record).map { (record: record, value: $0) } }
    let trusted = all.filter { $0.record.signers.contains(where: membership.isTrusted) }
    let share = limit / MembershipLimits.shareOfRevoked
    guard all.count > limit || all.count - trusted.count > share else { return [] }
    let others = all.filter { !$0.record.signers.contains(where: membership.isTrusted) }
    let first = roundRobin(trusted, keepingEnds, by: membership.isTrusted)
    let last = roundRobin(others, keepingEnds, by: membership.isKnown)
    let remaining = min(share, max(limit - first.count, 0))
    return Array(first.dropFirst(limit) + last.dropFirst(remaining))
  }

  /// Returns all signers' first records, then all second ones, and so on (round robin); in each
  /// round by signer.
  private func roundRobin(
    _ records: [(record: Record, value: UInt64)], _ keepingEnds: Bool,
    by counts: (SigningPublicKey) -> Bool
  ) -> [Record] {
    var lists: [SigningPublicKey: [Record]] = [:]
    let ordered = records.sorted {
      $0.value != $1.value ? $0.value > $1.value : $0.record.id < $1.record.id
    }
    for (record, _) in ordered {
      for signer in record.signers where counts(signer) {
        lists[signer, default: []].append(record)
      }
    }
    var ranks: [Digest256: (round: Int, signer: SigningPublicKey)] = [:]
    for (signer, list) in lists {
      for (position, record) in list.enumerated() {
        let round =
          keepingEnds ? min(2 * position, 2 * (list.count - 1 - position) + 1) : position
        if let known = ranks[record.id], (known.round, known.signer) < (round, signer) { continue }
        ranks[record.id] = (round, signer)
      }
    }
    return records.map(\.record).sorted { left, right in
      guard let one = ranks[left.id], let other = ranks[right.id] else { return left.id < right.id }
      return (one.round, one.signer) < (other.round, other.signer)
    }
  }
}

extension Record {
  fileprivate var isCertificate: Bool {
    if case .certificate = kind { true } else { false }
  }

  fileprivate var generationOfEpoch: UInt64? {
    if case .epoch(let epoch) = kind { UInt64(epoch.generation) } else { nil }
  }
}
