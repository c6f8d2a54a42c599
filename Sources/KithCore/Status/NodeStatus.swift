public import KithCrypto

/// A node's knowledge of itself, its peers and its stores at one moment.
///
/// The core fills in its part, and the node the rest. The control socket carries the value, and
/// `kith status --json` prints it (`Docs/CommandLine.md` explains each member). Ids are encoded as
/// their text.
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
  package var directory = ""
  /// The process that runs the node; nil if none does.
  package var processID: Int32?
  /// The addresses on which the node listens.
  public var listening: [String] = []
  /// Nil while discovery is off.
  package var discovery: Discovery?
  /// The account's devices, including revoked ones, by id.
  public var devices: [Device] = []
  /// The sessions with other devices, oldest first.
  public var peers: [Peer] = []
  /// The addresses at which this node calls other devices, those that a person named first.
  package var addresses: [Address] = []
  /// The stores, by identifier.
  public var stores: [Store] = []
  /// The carriers that the device uses, by id.
  public var carriers: [Carrier] = []
  /// The directory of the account's objects on each carrier; nil while nobody is signed in.
  package var carrierPlace: String?
  /// Whether this device was revoked.
  ///
  /// It reads the data that it has, and writes nothing.
  public var isRevoked = false
  /// Whether this device has used up its incarnations and publishes no more.
  package var hasNoIncarnations = false
  /// Whether this device keeps what keys showed before.
  package var keepsHistory = true
  /// The time in use, and the clocks of other devices.
  package var clock = Clock()
  package var counters = Counters()
  /// The problems, each with its remedy.
  public var problems: [Problem] = []

  /// Whether the node runs.
  public var isRunning: Bool { processID != nil }

  /// The account's members now, by id.
  package var members: [Device] { devices.filter(\.isMember) }

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
    package var isDialled: Bool
    /// The device's clock minus ours, as last received, in milliseconds.
    package var clockOffsetMilliseconds: Int64
    /// Whether stores are exchanged: the device is a member, and the clocks agree.
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
    /// The number of keys with an unpublished local write.
    public var drafts = 0
    /// The number of refusals not yet taken.
    public var refusals = 0
    /// The number of the newest refusal, also if it is not kept any more; 0: there was none.
    package var lastRefusal: UInt64 = 0
    /// The number of removals kept.
    package var removals = 0
    /// The devices that have not seen removals which were forgotten, or soon will be.
    ///
    /// Start them, or revoke them.
    public var removalsUnseenBy: [DeviceID] = []
    /// Whether the store may hold removed values, until its digest was compared with another device's.
    package var isBelowHorizon = false
    package var quarantined = 0
    /// The devices whose change sets take more than a device keeps of one author: their newest ones
    /// are not accepted here.
    package var authorsOverLimit: [DeviceID] = []
    /// Whether a program on this host opened it. Of stores that none has opened, all together, a
    /// device keeps less of one author.
    package var isOpenedHere = false
    /// Whether this device is such an author for the others.
    package var isOverLimit = false
    /// How much of the store was damaged on this disk and is still missing; nil if nothing is.
    ///
    /// Another device can return it, or a person can accept the loss. The keys are unknown.
    public var missing: StoreLoss?
    /// The digest of the state in hexadecimal; equal once devices have exchanged everything.
    package var digest = ""
    /// The other devices known to have all that this device published.
    public var upToDateDevices: [DeviceID] = []
    /// The peers with other limits for the store, with which it does not sync.
    public var policyMismatches: [DeviceID] = []

    package init(identifier: StoreIdentifier, usage: Usage) {
      self.identifier = identifier
      self.usage = usage
    }
  }

  /// The counters since the start.
  package struct Counters: Codable, Hashable, Sendable {
    /// Change sets with a wrong signature or digest, or sent for another store.
    package var rejected = 0
    package var quarantined = 0
    package var forks = 0
    /// Meetings with another process of this device.
    package var clones = 0
    package var divergences = 0
    /// Stored items that were damaged or could not be opened.
    package var damaged = 0
    /// Generations of clocks that this device started.
    package var generations = 0

    mutating func count(_ report: Report) {
      switch report {
      case .rejected(_, let count), .misdirected(_, _, _, let count): rejected += count
      case .quarantined(_, _, let count): quarantined += count
      case .fork: forks += 1
      case .clone: clones += 1
      case .divergence: divergences += 1
      case .newGeneration: generations += 1
      default: break
      }
    }
  }

  /// A problem and its remedy.
  public struct Problem: Codable, Hashable, Sendable, CustomStringConvertible {
    /// The name of the error's code.
    package var name: String
    /// The reason and the remedy, in one or two sentences.
    public var message: String
    /// The device concerned.
    public var device: DeviceID?
    /// The file or directory concerned.
    package var path: String?

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

  package struct Discovery: Codable, Hashable, Sendable {
    package struct Link: Codable, Hashable, Sendable {
      package var interface: String
      package var isLoopback: Bool
      /// `IPv4` or `IPv6`.
      package var family: String
      /// The system's last message; nil if the link works.
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

    package struct Neighbour: Codable, Hashable, Sendable {
      package var device: DeviceID
      /// The addresses from which its beacons came, `host:port`.
      package var addresses: [String]
      /// Milliseconds since its last beacon.
      package var milliseconds: UInt64

      package init(device: DeviceID, addresses: [String], milliseconds: UInt64) {
        self.device = device
        self.addresses = addresses
        self.milliseconds = milliseconds
      }
    }

    package var links: [Link]
    /// The devices whose beacons came in the last minutes, by id.
    package var neighbours: [Neighbour]
    /// Each goes to all links.
    package var sent: UInt64
    /// Datagrams that were no beacon of another member, or an old one.
    package var ignored: UInt64

    package init(links: [Link], neighbours: [Neighbour], sent: UInt64, ignored: UInt64) {
      self.links = links
      self.neighbours = neighbours
      self.sent = sent
      self.ignored = ignored
    }
  }
}
