/// When a write was made; the later one wins its key (`Docs/Glossary.md`).
package struct Stamp: Hashable, Comparable, Sendable {
  package let clock: HybridTime
  package let device: DeviceID

  package init(clock: HybridTime, device: DeviceID) {
    self.clock = clock
    self.device = device
  }

  package static func < (left: Self, right: Self) -> Bool {
    left.clock != right.clock ? left.clock < right.clock : left.device < right.device
  }
}

/// When an entry claimed space under the quota; if space is short, the later claim loses
/// (`Docs/Glossary.md`). Entries with equal claims are one group.
package struct Claim: Hashable, Comparable, Sendable {
  /// The publishing clock.
  package let clock: HybridTime
  package let device: DeviceID
  /// The number of the transaction within one publishing.
  package let group: UInt32

  package init(clock: HybridTime, device: DeviceID, group: UInt32) {
    self.clock = clock
    self.device = device
    self.group = group
  }

  package static func < (left: Self, right: Self) -> Bool {
    if left.clock != right.clock { return left.clock < right.clock }
    if left.device != right.device { return left.device < right.device }
    return left.group < right.group
  }
}
