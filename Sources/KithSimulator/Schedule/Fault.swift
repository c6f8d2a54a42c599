/// Each run has only some faults, because faults mask each other (swarm testing: Groce, Zhang,
/// Eide, Chen and Regehr, "Swarm Testing", ISSTA 2012).
package enum Fault: String, Codable, CaseIterable, Sendable {
  /// A message is lost with its connection, as in TCP.
  case loss
  /// A message is lost without its connection: worse than TCP.
  case silentLoss
  /// A message arrives twice: worse than TCP.
  case duplication
  /// Messages of one direction overtake each other: worse than TCP.
  case reordering
  /// Messages take seconds.
  case delay
  case partition
  case oneWayPartition
  /// A connection ends between two messages.
  case cut
  /// A process dies at any effect, and restarts from its disk.
  case crash
  case pause
  case diskFull
  /// A stored bit flips and is noticed; the device restarts from an old copy.
  case bitFlip
  /// A device restarts from an old copy of its disk.
  case restore
  /// A copy of a device's directory runs beside it.
  case clone
  /// A clock steps by less than peers allow.
  case clockStep
  case clockDrift
  /// Clocks are minutes to years ahead or behind; some are still called synchronised, and some step
  /// back.
  case farClock
  /// A peer reads slowly.
  case slowPeer
  /// A member signs data that its own replica would not.
  case traitor
  case join
  /// Devices have different limits for a store.
  case policies
  /// A device is revoked in any state; two may revoke each other.
  case revocation
  /// Devices, some without a network, meet on carriers; their faults are in ``CarrierFault``.
  case carriers
}
