internal import KithCrypto

extension Roster {
  /// An epoch, with the known holders of its secret.
  struct EpochState {
    var epoch: EpochRecord
    /// Whether a trusted key, and no revoked device, signed the record.
    var isTrusted: Bool
    /// Devices named by the record or by lockboxes of trusted signers.
    var recipients: Set<DeviceID>
    /// Devices named by the record.
    var named: Set<DeviceID>
    /// Whether its generation follows from those of its parents.
    var isSound = false
    /// Whether its generation follows, step by step, from the first: a high one needs as many
    /// epochs before it.
    var isProven = false
  }

  /// Ascending by record id.
  var epochRecords: [(record: Record, epoch: EpochRecord)] {
    records.compactMap { record in
      if case .epoch(let epoch) = record.kind { (record, epoch) } else { nil }
    }
  }

  var lockboxCount: Int {
    records.count { if case .lockbox = $0.kind { true } else { false } }
  }

  /// The epochs as their records state them. If an epoch has several records, a trusted one counts
  /// first, then the smallest id; their recipients are joined.
  func epochStates() -> [EpochID: EpochState] {
    var states: [EpochID: EpochState] = [:]
    for (record, epoch) in epochRecords {
      let isTrusted =
        record.signers.contains(where: membership.isTrusted)
        && !record.signers.contains(where: membership.revoked.contains)
      var recipients = Set(epoch.recipients.map(\.device))
      if let old = states[epoch.id] {
        recipients.formUnion(old.recipients)
        if old.isTrusted || !isTrusted {
          states[epoch.id]?.recipients = recipients
          states[epoch.id]?.named = recipients
          continue
        }
      }
      states[epoch.id] = EpochState(
        epoch: epoch, isTrusted: isTrusted, recipients: recipients, named: recipients)
    }
    for case (let record, .lockbox(let lockbox)) in records.map({ ($0, $0.kind) })
    where record.signers.contains(where: membership.isTrusted) {
      states[lockbox.epoch]?.recipients.insert(lockbox.secret.device)
    }
    Self.judgeGenerations(of: &states)
    return states
  }

  /// Returns whether members may publish under the epoch.
  func isUsable(_ state: EpochState) -> Bool {
    state.isTrusted && state.isSound && state.recipients.isDisjoint(with: membership.revoked)
  }

  /// Returns whether only lockboxes for revoked devices prevent publishing under the epoch.
  func isLeaked(_ state: EpochState) -> Bool {
    state.isTrusted && state.isSound && state.named.isDisjoint(with: membership.revoked)
      && !state.recipients.isDisjoint(with: membership.revoked)
  }

  /// A sound generation is one above the highest parent's. If a parent is unknown, it is above the
  /// known ones, and at most ``MembershipLimits/unprovenGeneration``, so that no device uses up the
  /// generations. Known parents must be sound.
  private static func judgeGenerations(of states: inout [EpochID: EpochState]) {
    // Ascending, so that parents, of lower generations, are judged first.
    for id in states.keys.sorted(by: {
      let (left, right) = (states[$0]?.epoch.generation ?? 0, states[$1]?.epoch.generation ?? 0)
      return left != right ? left < right : $0 < $1
    }) {
      guard let epoch = states[id]?.epoch else { continue }
      let known = epoch.parents.compactMap { states[$0] }
      let highest = known.map(\.epoch.generation).max() ?? 0
      let isAsItsParentsSay =
        known.count == epoch.parents.count
        ? epoch.generation - 1 == highest
        : epoch.generation > highest && epoch.generation <= MembershipLimits.unprovenGeneration
      states[id]?.isSound = isAsItsParentsSay && known.allSatisfy(\.isSound)
      states[id]?.isProven =
        isAsItsParentsSay && known.count == epoch.parents.count && known.allSatisfy(\.isProven)
    }
  }

  /// Returns the boxes sealed to a device, ascending by record id.
  func secrets(for device: DeviceID) -> [(record: Digest256, epoch: EpochID, box: [UInt8])] {
    records.compactMap { record in
      switch record.kind {
      case .epoch(let epoch):
        epoch.recipients.first { $0.device == device }.map { (record.id, epoch.id, $0.box) }
      case .lockbox(let lockbox) where lockbox.secret.device == device:
        (record.id, lockbox.epoch, lockbox.secret.box)
      default: nil
      }
    }
  }
}
