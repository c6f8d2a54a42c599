/// All inputs of a run: the setup and the events. The seed also decides the chances of network and
/// disk, so the same schedule gives the same run, event for event.
package struct Schedule: Codable, Hashable, Sendable {
  package var seed: UInt64
  package var setup: Setup
  package var phases: [Phase]

  /// The state in which a run begins.
  package struct Setup: Codable, Hashable, Sendable {
    package var devices: Int
    package var stores: Int
    /// How many others each device dials, at most all; 0: those that the overlay's plan draws.
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

  /// A time of faults, after which all end and convergence is demanded.
  package struct Phase: Codable, Hashable, Sendable {
    package var microseconds: UInt64
    /// In order of time.
    package var actions: [Action]
  }

  /// Actions in all.
  package var actionCount: Int { phases.reduce(0) { $0 + $1.actions.count } }
}
