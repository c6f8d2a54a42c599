internal import KithCore
internal import KithNetwork

/// What discovery on the LAN does and found, at one moment.
public struct NodeDiscovery: Codable, Sendable, Hashable {
  /// A network interface, for IPv4 or IPv6.
  public struct Link: Codable, Sendable, Hashable {
    /// The interface's name.
    public var interface: String
    /// Whether it leads to this host alone.
    public var isLoopback: Bool
    /// `IPv4` or `IPv6`.
    public var family: String
    /// What the system said when it was last tried in vain; nil where it works.
    public var problem: String?

    /// Says so.
    public init(
      interface: String, isLoopback: Bool = false, family: String, problem: String? = nil
    ) {
      (self.interface, self.isLoopback) = (interface, isLoopback)
      (self.family, self.problem) = (family, problem)
    }
  }

  /// A device that was heard.
  public struct Neighbour: Codable, Sendable, Hashable {
    /// Its id in hexadecimal.
    public var device: String
    /// Where it was heard, `host:port`.
    public var addresses: [String]
    /// How long ago it was heard last, in milliseconds.
    public var milliseconds: UInt64

    /// Says so.
    public init(device: String, addresses: [String], milliseconds: UInt64) {
      (self.device, self.addresses, self.milliseconds) = (device, addresses, milliseconds)
    }
  }

  /// Where beacons are sent and heard.
  public var links: [Link]
  /// Devices of the account that were heard in the last minutes, by id.
  public var neighbours: [Neighbour]
  /// Beacons sent, each on all links.
  public var sent: UInt64
  /// Datagrams that came and were no beacon of another member, or an old one.
  public var ignored: UInt64

  /// Says so.
  public init(links: [Link], neighbours: [Neighbour], sent: UInt64, ignored: UInt64) {
    (self.links, self.neighbours, self.sent, self.ignored) = (links, neighbours, sent, ignored)
  }

  init(_ status: DiscoveryStatus) {
    self.init(
      links: status.links.map {
        Link(
          interface: $0.interface, isLoopback: $0.isLoopback, family: $0.family.rawValue,
          problem: $0.problem)
      },
      neighbours: status.neighbours.map {
        Neighbour(device: $0.device.hex, addresses: $0.addresses, milliseconds: $0.milliseconds)
      },
      sent: status.sent, ignored: status.ignored)
  }
}
