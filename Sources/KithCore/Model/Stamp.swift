/// The time and device of a write, which decide which write of a key wins (`Docs/Glossary.md`).
package struct Stamp: Hashable, Comparable, Sendable {
  /// The hybrid logical clock of the writing device.
  package let clock: HybridTime
  /// The device that wrote.
  package let device: DeviceID

  /// Makes a stamp.
  package init(clock: HybridTime, device: DeviceID) {
    self.clock = clock
    self.device = device
  }

  /// Compares by clock, then by device id.
  package static func < (left: Self, right: Self) -> Bool {
    left.clock != right.clock ? left.clock < right.clock : left.device < right.device
  }
}

/// The time of an entry's claim to quota. With too little quota the later claim loses
/// (`Docs/Glossary.md`). Entries with equal claims are one group.
package struct Claim: Hashable, Comparable, Sendable {
  /// The publishing clock of the claim.
  package let clock: HybridTime
  /// The device that claimed it.
  package let device: DeviceID
  /// The number of the transaction within one publishing.
  package let group: UInt32

  /// Makes a claim.
  package init(clock: HybridTime, device: DeviceID, group: UInt32) {
    self.clock = clock
    self.device = device
    self.group = group
  }

  /// Compares by clock, then by device id, then by group.
  package static func < (left: Self, right: Self) -> Bool {
    if left.clock != right.clock { return left.clock < right.clock }
    if left.device != right.device { return left.device < right.device }
    return left.group < right.group
  }
}
