public import KithCore

/// What discovery does and found, at one moment.
public struct DiscoveryStatus: Sendable, Hashable {
  /// A device that was heard on the link.
  public struct Neighbour: Sendable, Hashable {
    /// The device.
    public var device: DeviceID
    /// Where it was heard, `host:port`.
    public var addresses: [String]
    /// How long ago it was heard last, in milliseconds.
    public var milliseconds: UInt64
  }

  /// The links, by interface; one without a problem works.
  public var links: [LinkMulticast.Link]
  /// Devices of the account that were heard of late, by id.
  public var neighbours: [Neighbour]
  /// Beacons sent, each on all links.
  public var sent: UInt64
  /// Datagrams that came and were no beacon of another member, or an old one.
  public var ignored: UInt64
}
