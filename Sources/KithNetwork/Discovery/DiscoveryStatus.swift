public import KithCore

/// The state of discovery at one moment.
public struct DiscoveryStatus: Sendable, Hashable {
  /// A device that was heard on the link.
  public struct Neighbour: Sendable, Hashable {
    /// The device.
    public var device: DeviceID
    /// The addresses at which it was heard, `host:port`.
    public var addresses: [String]
    /// The time since it was heard last, in milliseconds.
    public var milliseconds: UInt64
  }

  /// The links, by interface; a link without a problem works.
  public var links: [LinkMulticast.Link]
  /// The devices of the account that were heard recently, by id.
  public var neighbours: [Neighbour]
  /// The number of beacons sent, each on all links.
  public var sent: UInt64
  /// The number of datagrams that were not a beacon of another member, or an old one.
  public var ignored: UInt64
}
