public import KithCrypto

extension NodeStatus {
  /// A device's knowledge of the time (`Docs/Protocol.md`, "Clocks").
  public struct Clock: Codable, Hashable, Sendable {
    /// The time in use, in milliseconds since 1970.
    public var milliseconds: Int64 = 0
    /// The time in use less the host's, in milliseconds.
    public var aheadOfHostMilliseconds: Int64 = 0
    /// Whether the kernel calls the host's clock synchronised.
    package var isSynchronised = false
    /// Whether the time in use is known to be right.
    public var isCertain = false
    /// Whether the host's clock cannot be right.
    package var isWorthless = false
    /// The device whose time is in use; nil: the host's.
    public var follows: DeviceID?
    /// The generation in which clocks go on: 1, and one more each time a clock was healed.
    public var generation: UInt8 = 1
    /// The latest generation that counts now.
    package var generationLimit: UInt8 = 1
    /// By how much writes are stamped ahead of the time, in milliseconds; 0 if that is less than
    /// clocks may differ. Peers do not take such writes.
    package var stampsAheadMilliseconds: Int64 = 0
    /// The devices whose clocks differed too much when they were last heard, by id.
    package var differences: [ClockDifference] = []
    /// The times that devices told within the last hour, by id.
    package var peers: [PeerClock] = []

    package init() {}
  }

  /// The time that another device told.
  package struct PeerClock: Codable, Hashable, Sendable {
    /// The device.
    package var device: DeviceID
    /// Its time less the one in use here, in milliseconds.
    package var milliseconds: Int64
    /// Whether its kernel calls its clock synchronised.
    package var isSynchronised: Bool
  }

  /// Another device's clock that differs too much from the time here to exchange stores.
  package struct ClockDifference: Codable, Hashable, Sendable {
    /// Why neither device follows the other.
    package enum Outcome: String, Codable, Hashable, Sendable {
      /// Both clocks are called synchronised.
      case bothSynchronised
      /// Neither clock is called synchronised.
      case neitherSynchronised
      /// Its clock is called synchronised and ours is not, but the difference is more than a day, and
      /// ours may be right.
      case tooFar
      /// Its clock is called synchronised and ours is not, but another such clock is nearer to ours.
      case anotherIsNearer
      /// Our clock is called synchronised and its is not, and it does not follow ours.
      case theyAreTooFar
    }

    /// The device.
    package var device: DeviceID
    /// Its clock less ours, in milliseconds.
    package var milliseconds: Int64
    /// Why neither follows the other.
    package var outcome: Outcome
  }
}
