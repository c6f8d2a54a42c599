extension NodeStatus {
  /// A device's knowledge of the time (`Docs/Protocol/clocks.md`).
  package struct Clock: Codable, Hashable, Sendable {
    /// The time in use, in milliseconds since 1970.
    package var milliseconds: Int64 = 0
    /// The time in use less the host's, in milliseconds.
    package var aheadOfHostMilliseconds: Int64 = 0
    /// Whether the kernel says so.
    package var isSynchronised = false
    /// Whether the time in use is known to be right.
    package var isCertain = false
    package var isWorthless = false
    /// The device whose time is in use; nil: the host's.
    package var follows: DeviceID?
    /// The generation of clocks: it begins at 1, and a healing may raise it.
    package var generation: UInt8 = 1
    /// The latest generation that counts now.
    package var generationLimit: UInt8 = 1
    /// How far stamps are ahead of the time; 0 if less than clocks may differ. Peers do not take
    /// such writes.
    package var stampsAheadMilliseconds: Int64 = 0
    /// Devices whose clocks, as last received, differed too much, by id.
    package var differences: [ClockDifference] = []
    /// Times received within the last hour, by id.
    package var peers: [PeerClock] = []

    package init() {}

    init(_ timeKeeper: TimeKeeper, _ differences: ClockDifferences) {
      milliseconds = Int64(clamping: timeKeeper.now.wallMilliseconds)
      aheadOfHostMilliseconds =
        milliseconds - Int64(clamping: timeKeeper.host.wallMilliseconds)
      isSynchronised = timeKeeper.isSynchronised
      isCertain = timeKeeper.isCertain
      isWorthless = timeKeeper.isWorthless
      follows = timeKeeper.followed
      generation = timeKeeper.generation
      generationLimit = timeKeeper.generationLimit
      let ahead = timeKeeper.aheadMilliseconds
      stampsAheadMilliseconds = ahead > Limits.clockDifferenceMilliseconds ? ahead : 0
      self.differences = differences.all
      peers = timeKeeper.memberTimes.sorted { $0.key < $1.key }.compactMap { device, memberTime in
        timeKeeper.time(of: device).map {
          PeerClock(
            device: device, milliseconds: $0 - Int64(clamping: timeKeeper.now.wallMilliseconds),
            isSynchronised: memberTime.isSynchronised)
        }
      }
    }
  }

  /// The time that a device sent.
  package struct PeerClock: Codable, Hashable, Sendable {
    package var device: DeviceID
    /// Its time less the one in use here.
    package var milliseconds: Int64
    /// Whether its kernel says so.
    package var isSynchronised: Bool
  }

  /// A clock that differs too much from ours to exchange stores.
  package struct ClockDifference: Codable, Hashable, Sendable {
    /// Why neither device follows the other.
    package enum Outcome: String, Codable, Hashable, Sendable {
      case bothSynchronised
      case neitherSynchronised
      /// Only its clock is synchronised, but they differ by more than a day, and ours may be right.
      case tooFar
      /// Only its clock is synchronised, but another such clock is nearer to ours.
      case anotherIsNearer
      /// Only our clock is synchronised, and it does not follow ours.
      case theyAreTooFar
    }

    package var device: DeviceID
    /// The device's clock minus ours.
    package var milliseconds: Int64
    package var outcome: Outcome
  }
}
