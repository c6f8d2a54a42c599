internal import KithCrypto

extension Roster {
  /// An epoch of the account, with all that is known of who holds its secret.
  struct EpochState {
    var epoch: EpochRecord
    /// Whether a member, or the recovery key, vouches for the record, and no revoked device does.
    var isTrusted: Bool
    /// Those whom the record and the lockboxes of trusted signers name.
    var recipients: Set<DeviceID>
  }

  /// Epoch records with their ids, ascending by record id.
  var epochRecords: [(record: Record, epoch: EpochRecord)] {
    records.compactMap { record in
      if case .epoch(let epoch) = record.kind { (record, epoch) } else { nil }
    }
  }

  /// The epochs by id. Of several records of one epoch a trusted one counts before others, then
  /// the smallest record id; the recipients of all are taken together.
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
          continue
        }
      }
      states[epoch.id] = EpochState(
        epoch: epoch, isTrusted: isTrusted, recipients: recipients)
    }
    for case (let record, .lockbox(let lockbox)) in records.map({ ($0, $0.kind) })
    where record.signers.contains(where: membership.isTrusted) {
      states[lockbox.epoch]?.recipients.insert(lockbox.secret.device)
    }
    return states
  }

  /// Whether members may publish under the epoch: trusted, no revoked recipient, and a generation
  /// that agrees with what is known of its parents.
  func isUsable(_ state: EpochState, among states: [EpochID: EpochState]) -> Bool {
    guard state.isTrusted, state.recipients.isDisjoint(with: membership.revoked) else {
      return false
    }
    let known = state.epoch.parents.compactMap { states[$0]?.epoch.generation }
    guard let highest = known.max() else { return true }
    return known.count == state.epoch.parents.count
      ? state.epoch.generation - 1 == highest : state.epoch.generation > highest
  }

  /// Every box that was sealed to a device, ascending by record id.
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
