import KithCore

/// What a device knows of the time (`Docs/Protocol.md`, "Clocks").
public struct ClockReport: Codable, Hashable, Sendable {
  /// What another device said of the time within the last hour.
  public struct Peer: Codable, Hashable, Sendable {
    /// Its id, in hexadecimal.
    public var device: String
    /// Its time less the one used here, in milliseconds.
    public var milliseconds: Int64
    /// Whether its kernel calls its clock synchronised.
    public var isSynchronised: Bool
  }

  /// The time that is used, in milliseconds since 1970.
  public var milliseconds: Int64
  /// That time less the host's, in milliseconds.
  public var aheadOfHostMilliseconds: Int64
  /// Whether the kernel calls the host's clock synchronised.
  public var isSynchronised: Bool
  /// Whether the time that is used is known to be right.
  public var isCertain: Bool
  /// Whether the host's clock cannot be right.
  public var isWorthless: Bool
  /// The id of the device whose time it is, in hexadecimal; nil: the host's.
  public var follows: String?
  /// The generation in which clocks go on.
  public var generation: Int
  /// The latest generation that counts now.
  public var generationLimit: Int
  /// By how much writes are stamped ahead of the time, in milliseconds; 0 if that is less than a
  /// minute.
  public var stampsAheadMilliseconds: Int64
  /// Devices that were heard, by id.
  public var peers: [Peer]
}

extension ClockReport {
  init(_ clock: ReplicaStatus.Clock) {
    milliseconds = clock.milliseconds
    aheadOfHostMilliseconds = clock.adoptedMilliseconds
    isSynchronised = clock.isSynchronised
    isCertain = clock.isCertain
    isWorthless = clock.isWorthless
    follows = clock.adoptedFrom?.hex
    generation = Int(clock.generation)
    generationLimit = Int(clock.generationLimit)
    stampsAheadMilliseconds = clock.dataAheadMilliseconds
    peers = clock.peers.map {
      Peer(
        device: $0.device.hex, milliseconds: $0.milliseconds, isSynchronised: $0.isSynchronised)
    }
  }
}
