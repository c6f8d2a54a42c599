/// The time and the device of a write, which decide which write of a key wins (`Docs/Glossary.md`).
public struct Stamp: Hashable, Comparable, Sendable {
  /// The hybrid logical clock of the writing device.
  public let clock: HybridTime
  /// The device that wrote.
  public let device: DeviceID

  /// Makes a stamp.
  public init(clock: HybridTime, device: DeviceID) {
    self.clock = clock
    self.device = device
  }

  /// Compares by clock, then by device id.
  public static func < (left: Self, right: Self) -> Bool {
    if Canary.compareStampsWrongly.isPlanted, left.device != right.device {
      return left.device < right.device
    }
    return left.clock != right.clock ? left.clock < right.clock : left.device < right.device
  }
}

/// The time at which an entry's room was claimed. The later claim loses if there is too little room
/// (`Docs/Glossary.md`). Entries with equal claims are one group.
public struct Claim: Hashable, Comparable, Sendable {
  /// The publishing clock under which the room was claimed.
  public let clock: HybridTime
  /// The device that claimed it.
  public let device: DeviceID
  /// The number of the transaction within one publishing.
  public let group: UInt32

  /// Makes a claim.
  public init(clock: HybridTime, device: DeviceID, group: UInt32) {
    self.clock = clock
    self.device = device
    self.group = group
  }

  /// Compares by clock, then by device id, then by group.
  public static func < (left: Self, right: Self) -> Bool {
    if left.clock != right.clock { return left.clock < right.clock }
    if left.device != right.device { return left.device < right.device }
    return left.group < right.group
  }
}
