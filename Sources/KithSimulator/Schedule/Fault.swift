/// What may go wrong in a run. Each run has some of them switched off (swarm testing: Groce, Zhang,
/// Eide, Chen and Regehr, "Swarm Testing", ISSTA 2012), for faults mask each other.
package enum Fault: String, Codable, CaseIterable, Sendable {
  /// A message is lost, and with it the connection, as TCP has it.
  case loss
  /// A message is lost, and the connection goes on: worse than TCP.
  case silentLoss
  /// A message comes twice: worse than TCP.
  case duplication
  /// Messages of one direction overtake each other: worse than TCP.
  case reordering
  /// Messages take seconds.
  case delay
  /// Nothing passes between two groups of devices, in both directions.
  case partition
  /// Nothing passes in one direction, while the other goes on.
  case oneWayPartition
  /// A connection ends between two messages.
  case cut
  /// A process dies at any effect, and starts again from its disk.
  case crash
  /// A process stands still for a while, and goes on.
  case pause
  /// A disk takes no more.
  case diskFull
  /// A bit of what is stored flips, which is noticed; the device starts again from an old copy.
  case bitFlip
  /// A device starts again from an old copy of its disk.
  case restore
  /// A copy of a device's directory runs beside it.
  case clone
  /// A clock steps by less than peers allow.
  case clockStep
  /// A clock runs too fast or too slow.
  case clockDrift
  /// Clocks are minutes to years ahead or behind, of one device or several; some are called
  /// synchronised all the same, and some step back.
  case farClock
  /// A peer takes in little at a time.
  case slowPeer
  /// A member signs what its own replica would not.
  case traitor
  /// A device joins in the middle.
  case join
  /// Devices have different limits for a store.
  case policies
  /// A device is revoked, lost or not, wherever the others are; two may revoke each other.
  case revocation
}
