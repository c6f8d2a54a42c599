internal import KithCrypto

/// Which of the attached records a roster keeps where they are too many (`Docs/Decisions/roster-bounds.md`).
///
/// The choice is a function of the records. As long as they leave it open who is a member it is made
/// in an order that does not depend on what else there is, so that what was given up once would be
/// given up again: rosters that lost different records still agree after an exchange.
struct RosterSelection {
  /// What is kept, ascending by id.
  private(set) var kept: [Record]
  /// What has a place by its signers and no room, what would get one first in front.
  private(set) var excess: [Record] = []
  /// What follows from ``kept``.
  private(set) var membership: Membership

  /// - Parameters:
  ///   - records: everything that bears valid signatures, ascending by id.
  ///   - membership: what follows from it.
  /// - Complexity: O(*r*) where there is room, else as for ``Membership``.
  init(of records: [Record], _ membership: Membership) {
    let attached = records.filter { membership.attached.contains($0.id) }
    kept = attached
    self.membership = membership
    // Each choice rests on those before it: who is a member, which epochs there are, the others.
    give(up: certificatesWithoutRoom(records))
    give(up: revocationsWithoutRoom())
    give(
      up: withoutRoom(atMost: MembershipLimits.epochs, keepingEnds: true) { $0.generationOfEpoch })
    let generations = Dictionary(
      kept.compactMap { record in
        if case .epoch(let epoch) = record.kind {
          (epoch.id, UInt64(epoch.generation))
        } else {
          nil
        }
      }, uniquingKeysWith: max)
    give(
      up: withoutRoom(atMost: MembershipLimits.lockboxes, keepingEnds: true) { record in
        guard case .lockbox(let lockbox) = record.kind else { return nil }
        return generations[lockbox.epoch] ?? 0
      })
    give(
      up: withoutRoom(atMost: MembershipLimits.renames) { record in
        if case .rename(let rename) = record.kind { rename.issued } else { nil }
      })
    give(
      up: withoutRoom(atMost: MembershipLimits.unknownRecords) { record in
        if case .unknown = record.kind { 0 } else { nil }
      })
    let ids = Set(kept.map(\.id) + excess.map(\.id))
    // What only stood on what was given up.
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

  private func certificatesWithoutRoom(_ records: [Record]) -> [Record] {
    guard kept.count > MembershipLimits.certificates,
      kept.count(where: \.isCertificate) > MembershipLimits.certificates
    else { return [] }
    return Array(
      membership.certificatesByNeed(in: records).dropFirst(MembershipLimits.certificates))
  }

  /// Of each device those with the smallest ids stay, so that none that is revoked ever comes back for
  /// want of room.
  private func revocationsWithoutRoom() -> [Record] {
    var counts: [DeviceID: Int] = [:]
    return kept.filter { record in
      guard case .revocation(let revocation) = record.kind else { return false }
      counts[revocation.device, default: 0] += 1
      return counts[revocation.device, default: 0] > MembershipLimits.revocationsOfDevice
    }
  }

  /// The records of one kind beyond a limit. Those that a member signed come before those that only
  /// revoked devices did. Each signer's stand in an order of their own, by `value` from the highest,
  /// then by id; and of all signers' the first stand before all the second, and so on, so that nobody
  /// takes the room of who needs less.
  ///
  /// `keepingEnds` has a signer's last stand before those in the middle; `value` is nil for records of
  /// other kinds.
  private func withoutRoom(
    atMost limit: Int, keepingEnds: Bool = false, value: (Record) -> UInt64?
  ) -> [Record] {
    let all = kept.compactMap { record in value(record).map { (record: record, value: $0) } }
    let trusted = all.filter { $0.record.signers.contains(where: membership.isTrusted) }
    let share = limit / MembershipLimits.shareOfRevoked
    guard all.count > limit || all.count - trusted.count > share else { return [] }
    let others = all.filter { !$0.record.signers.contains(where: membership.isTrusted) }
    let first = inTurn(trusted, keepingEnds, by: membership.isTrusted)
    let last = inTurn(others, keepingEnds, by: membership.isKnown)
    let room = min(share, max(limit - first.count, 0))
    return Array(first.dropFirst(limit) + last.dropFirst(room))
  }

  /// All signers' first records, then all their second ones, and so on; in each turn by signer.
  private func inTurn(
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
    var turns: [Digest256: (turn: Int, signer: SigningPublicKey)] = [:]
    for (signer, list) in lists {
      for (place, record) in list.enumerated() {
        let turn =
          keepingEnds ? min(2 * place, 2 * (list.count - 1 - place) + 1) : place
        if let known = turns[record.id], (known.turn, known.signer) < (turn, signer) { continue }
        turns[record.id] = (turn, signer)
      }
    }
    return records.map(\.record).sorted { left, right in
      guard let one = turns[left.id], let other = turns[right.id] else { return left.id < right.id }
      return (one.turn, one.signer) < (other.turn, other.signer)
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
