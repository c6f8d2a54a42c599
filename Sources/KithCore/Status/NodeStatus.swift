public import KithCrypto

/// A node's knowledge of itself, its peers and its stores at one moment.
///
/// One value serves all: the core fills in its part and the node the rest, the control socket
/// carries it, and `kith status --json` prints it (`Docs/CommandLine.md` explains each member). Ids
/// are encoded as their text.
///
/// ```swift
/// for await status in accounts.statusUpdates {
///   show(status.peers.count, status.problems.map(\.message))
/// }
/// ```
public struct NodeStatus: Codable, Hashable, Sendable {
  /// The account; nil while nobody is signed in.
  public var account: AccountID?
  /// This device; nil while nobody is signed in.
  public var device: DeviceID?
  /// The device's directory.
  public var directory = ""
  /// The process that runs the node; nil if none does.
  public var processID: Int32?
  /// The addresses on which the node listens.
  public var listening: [String] = []
  /// The links, findings and counters of discovery; nil while it is off.
  package var discovery: Discovery?
  /// The devices of the account, also those that were revoked, by id.
  public var devices: [Device] = []
  /// The sessions with other devices, by age.
  public var peers: [Peer] = []
  /// The stores, by identifier.
  public var stores: [Store] = []
  /// Whether this device was removed from the account: it reads the data that it has, and writes
  /// nothing.
  public var isRevoked = false
  /// Whether this device has used up its incarnations, and publishes no more.
  package var isBarren = false
  /// The time in use, and the clocks of other devices.
  public var clock = Clock()
  /// The counters since the start.
  package var counters = Counters()
  /// The problems, each with its remedy.
  public var problems: [Problem] = []

  /// Whether the node runs.
  public var isRunning: Bool { processID != nil }

  /// The devices that are members of the account now, by id.
  public var members: [Device] { devices.filter(\.isMember) }

  package init(account: AccountID?, device: DeviceID?) {
    self.account = account
    self.device = device
  }

  /// A session with another device.
  public struct Peer: Codable, Hashable, Sendable {
    /// The device; nil until it has shown its certificate.
    public var device: DeviceID?
    /// The device's address.
    public var address: String
    /// Whether this side dialled.
    public var isDialled: Bool
    /// The device's clock less ours when it connected, in milliseconds.
    public var clockOffsetMilliseconds: Int64
    /// Whether stores are exchanged: the device is a member, and clocks agree.
    public var isExchanging: Bool

    package init(
      device: DeviceID?, address: String, isDialled: Bool, clockOffsetMilliseconds: Int64 = 0,
      isExchanging: Bool
    ) {
      self.device = device
      self.address = address
      self.isDialled = isDialled
      self.clockOffsetMilliseconds = clockOffsetMilliseconds
      self.isExchanging = isExchanging
    }
  }

  /// A store.
  public struct Store: Codable, Hashable, Sendable {
    /// The store's identifier.
    public var identifier: StoreIdentifier
    /// The bytes and keys shown, with the limits.
    public var usage: Usage
    /// The number of newest writes that the quota hides.
    public var hiddenKeys = 0
    /// The number of local transactions that wait to be published.
    public var drafts = 0
    /// The number of refusals that wait to be taken.
    public var refusals = 0
    /// The number of removed entries that are kept.
    package var removals = 0
    /// The number of malformed entries that were set aside for ever.
    package var quarantined = 0
    /// How much of the store was damaged on this disk, while no other device has given it back and
    /// nobody has accepted the loss; nil if nothing is missing. The keys are not known.
    public var missing: StoreLoss?
    /// The digest of the state in hexadecimal, equal on devices that have exchanged everything.
    package var digest = ""
    /// The other devices known to have everything that this device has published.
    public var heldBy: [DeviceID] = []
    /// The peers whose limits for the store differ, so that it does not sync with them.
    public var policyMismatches: [DeviceID] = []

    package init(identifier: StoreIdentifier, usage: Usage) {
      self.identifier = identifier
      self.usage = usage
    }
  }

  /// The counters since the start.
  package struct Counters: Codable, Hashable, Sendable {
    /// Change sets that failed a signature or digest.
    package var rejected = 0
    /// Entries set aside for ever.
    package var quarantined = 0
    /// Forks seen.
    package var forks = 0
    /// Meetings with another process of this very device.
    package var clones = 0
    /// Equal vectors with different digests.
    package var divergences = 0
    /// Stored items that were damaged, or could not be opened.
    package var damaged = 0
    /// Generations of clocks that this device started.
    package var generations = 0
  }

  /// Something that is wrong, and the remedy.
  public struct Problem: Codable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the error's code.
    package var name: String
    /// The reason and the remedy, in one or two sentences.
    public var message: String
    /// The device concerned.
    public var device: DeviceID?
    /// The file or directory concerned.
    public var path: String?

    private enum CodingKeys: String, CodingKey {
      case name = "code"
      case message, device, path
    }

    package init(name: String, message: String, device: DeviceID?, path: String?) {
      self.name = name
      self.message = message
      self.device = device
      self.path = path
    }

    /// The path, if there is one, and the message.
    public var description: String { path.map { "\($0): \(message)" } ?? message }
  }

  /// Discovery on the local network: its links, its findings and its counters.
  package struct Discovery: Codable, Hashable, Sendable {
    /// A network interface, for IPv4 or IPv6.
    package struct Link: Codable, Hashable, Sendable {
      /// The interface's name.
      package var interface: String
      /// Whether it leads to this host alone.
      package var isLoopback: Bool
      /// `IPv4` or `IPv6`.
      package var family: String
      /// The system's message when it last failed; nil if it works.
      package var problem: String?

      package init(
        interface: String, isLoopback: Bool = false, family: String, problem: String? = nil
      ) {
        self.interface = interface
        self.isLoopback = isLoopback
        self.family = family
        self.problem = problem
      }
    }

    /// A device of the account that was heard.
    package struct Neighbour: Codable, Hashable, Sendable {
      /// The device.
      package var device: DeviceID
      /// The addresses at which it was heard, `host:port`.
      package var addresses: [String]
      /// The time since it was heard last, in milliseconds.
      package var milliseconds: UInt64

      package init(device: DeviceID, addresses: [String], milliseconds: UInt64) {
        self.device = device
        self.addresses = addresses
        self.milliseconds = milliseconds
      }
    }

    /// The links on which beacons are sent and heard.
    package var links: [Link]
    /// The devices that were heard in the last minutes, by id.
    package var neighbours: [Neighbour]
    /// The number of beacons sent, each on all links.
    package var sent: UInt64
    /// The number of datagrams that were not a beacon of another member, or an old one.
    package var ignored: UInt64

    package init(links: [Link], neighbours: [Neighbour], sent: UInt64, ignored: UInt64) {
      self.links = links
      self.neighbours = neighbours
      self.sent = sent
      self.ignored = ignored
    }
  }
}
