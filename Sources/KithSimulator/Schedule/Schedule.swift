/// All inputs of a run. The seed also decides the chances of network and disk: the same schedule
/// gives the same run, event for event.
package struct Schedule: Codable, Hashable, Sendable {
  package var seed: UInt64
  package var setup: Setup
  package var phases: [Phase]

  package struct Setup: Codable, Hashable, Sendable {
    package var devices: Int
    package var stores: Int
    /// How many others each device dials; 0: those that the overlay's plan draws.
    package var degree: Int
    /// Limits of every store.
    package var totalBytes: Int
    package var keys: Int
    package var valueBytes: Int
    /// Keys that programs write.
    package var keySpace: Int
    package var faults: [Fault]
    /// One way.
    package var latencyMicroseconds: UInt64
    /// The chance of each message fault, in 1/1,024.
    package var faultChance: Int
    package var commitMicroseconds: UInt64
    /// Nil: none.
    package var carriers: Carriers?
    /// Removals that a store keeps; nil: as many as in production.
    package var removalLimit: Int?
  }

  package struct Carriers: Codable, Hashable, Sendable {
    package var count: Int
    /// Each device's carriers, as bits.
    package var attached: [UInt64]
    /// Devices of different networks never meet.
    package var networks: [Int]
    package var shortestMilliseconds: UInt64
    /// The bytes of an object of level 0; nil: as many as in production.
    package var levelBytes: Int?
    package var faults: [CarrierFault]
    /// The chance of each fault of an operation, in 1/1,024.
    package var faultChance: Int
  }

  /// A time of faults. At its end all faults end, and convergence is demanded.
  package struct Phase: Codable, Hashable, Sendable {
    package var microseconds: UInt64
    /// In order of time.
    package var actions: [Action]
  }

  package var actionCount: Int { phases.reduce(0) { $0 + $1.actions.count } }
}
