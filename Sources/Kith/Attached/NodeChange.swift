internal import KithCore

/// One change as the node told it to an attached program.
struct NodeChange {
  /// Why; nil: this program wrote.
  var reason: ChangeReason?
  /// What keys show now; nil: nothing.
  var values: [(key: Key, value: EncodedValue?)]
  /// Keys whose writes lost.
  var superseded: [Key]

  init(_ change: ControlChange) throws(KithError) {
    guard let told = Change.Reason(rawValue: change.reason) else { throw .malformedControl }
    reason =
      switch told {
      case .ownWrite: nil
      case .serverChange: .serverChange
      case .initialSyncChange: .initialSyncChange
      case .quotaViolationChange: .quotaViolationChange
      case .accountChange: .accountChange
      }
    values = try Self.values(change.new)
    superseded = change.superseded.map { Key($0) }
  }

  /// Takes in another part of the same change.
  mutating func append(_ other: Self) {
    values += other.values
    superseded += other.superseded
  }

  /// Entries as keys and encoded values.
  static func values(
    _ entries: [ControlEntry]
  ) throws(KithError) -> [(key: Key, value: EncodedValue?)] {
    var values: [(key: Key, value: EncodedValue?)] = []
    values.reserveCapacity(entries.count)
    for entry in entries {
      values.append((Key(entry.key), try entry.operation().value))
    }
    return values
  }
}

extension ChangeReason {
  /// The later of two, in the order of ``Change/Reason``.
  func joined(with other: Self?) -> Self {
    guard let other else { return self }
    return Change.Reason(self).joined(with: Change.Reason(other)) == Change.Reason(self)
      ? self : other
  }
}
