/// Everything that decides a run but the code: what there is, and what happens when. The seed also
/// feeds the network's and the disks' chances, so the same schedule gives the same run, event for
/// event.
package struct Schedule: Codable, Hashable, Sendable {
  package var seed: UInt64
  package var setup: Setup
  package var phases: [Phase]

  /// What there is when a run begins.
  package struct Setup: Codable, Hashable, Sendable {
    /// Devices that are there from the beginning.
    package var devices: Int
    package var stores: Int
    /// How many others each device dials; all of them where it is at least as many; 0: those that the
    /// overlay's plan draws.
    package var degree: Int
    /// Limits of every store.
    package var totalBytes: Int
    package var keys: Int
    package var valueBytes: Int
    /// How many keys programs write.
    package var keySpace: Int
    package var faults: [Fault]
    /// One way, in microseconds.
    package var latencyMicroseconds: UInt64
    /// Chances of a message, in 1/1,024.
    package var faultChance: Int
    /// How long a commit takes, in microseconds.
    package var commitMicroseconds: UInt64
  }

  /// A time of faults, after which all are mended and convergence is demanded.
  package struct Phase: Codable, Hashable, Sendable {
    package var microseconds: UInt64
    /// In order of time.
    package var actions: [Action]
  }

  /// Actions in all.
  package var actionCount: Int { phases.reduce(0) { $0 + $1.actions.count } }
}
