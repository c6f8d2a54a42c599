internal import KithCore

/// What a store uses of its limits, as the control socket and `--json` tell it.
public struct UsageReport: Codable, Sendable, Hashable {
  /// Encoded bytes of the values shown.
  public var bytes: Int
  /// The most of them.
  public var limitBytes: Int
  /// Keys shown.
  public var keys: Int
  /// The most of them.
  public var limitKeys: Int
  /// The longest key, in bytes of UTF-8.
  public var limitKeyBytes: Int
  /// The largest value, in encoded bytes.
  public var limitValueBytes: Int

  init(_ usage: Usage) {
    bytes = usage.bytes
    limitBytes = usage.policy.totalBytes
    keys = usage.keys
    limitKeys = usage.policy.keys
    limitKeyBytes = usage.policy.keyBytes
    limitValueBytes = usage.policy.valueBytes
  }
}

/// A node's status, as the control socket and `--json` tell it. Ids are in hexadecimal.
public struct NodeReport: Codable, Sendable, Hashable {
  /// A device of the account.
  public struct Device: Codable, Sendable, Hashable {
    /// Its id.
    public var id: String
    /// Its name.
    public var name: String
    /// When it was certified, in milliseconds since 1970.
    public var issuedMilliseconds: UInt64
    /// Whether it is the one that answers.
    public var isSelf: Bool
    /// Whether it has a session with the one that answers.
    public var isConnected: Bool
    /// When it was last heard, in milliseconds since 1970.
    public var lastSeenMilliseconds: UInt64?
    /// Whether anything was ever heard of it since it became a member.
    public var wasHeard: Bool
    /// Where it may be met.
    public var addresses: [String]
  }

  /// A session.
  public struct Peer: Codable, Sendable, Hashable {
    /// The device, once it is known.
    public var device: String?
    /// Where it is.
    public var address: String
    /// Whether the one that answers dialled.
    public var isDialled: Bool
    /// Its clock less ours when it connected, in milliseconds.
    public var clockOffsetMilliseconds: Int64
    /// Whether stores are exchanged.
    public var isExchanging: Bool
  }

  /// A store.
  public struct Store: Codable, Sendable, Hashable {
    /// Its identifier.
    public var identifier: String
    /// What it uses.
    public var usage: UsageReport
    /// Newest writes that are not shown.
    public var hiddenKeys: Int
    /// Local transactions that wait to be published.
    public var drafts: Int
    /// Refusals that wait to be taken.
    public var refusals: Int
    /// Removed entries kept.
    public var removals: Int
    /// Entries set aside for ever.
    public var quarantined: Int
    /// Whether a part of it was damaged here, which no device has given back yet, and whose loss nobody
    /// has accepted.
    public var isLacking: Bool
    /// How much that is: change sets, and their entries. Nil where nothing is missing.
    public var missingChangeSets: Int?
    /// See ``missingChangeSets``.
    public var missingEntries: Int?
    /// The digest of its state.
    public var digest: String
    /// Devices known to have everything that this one published.
    public var heldBy: [String]
    /// Peers whose limits differ.
    public var policyMismatches: [String]
  }

  /// The account.
  public var account: String
  /// The device that answers.
  public var device: String
  /// Its directory.
  public var directory: String
  /// Whether its node runs.
  public var isRunning: Bool
  /// Where it listens.
  public var listening: [String]
  /// What discovery does and found; nil while there is none.
  public var discovery: NodeDiscovery?
  /// Whether the kernel calls its clock synchronised.
  public var isClockSynchronised: Bool
  /// What it knows of the time; nil while nobody is signed in.
  public var clock: ClockReport?
  /// What is wrong, and what to do.
  public var problems: [String]
  /// Devices of the account.
  public var devices: [Device]
  /// Sessions.
  public var peers: [Peer]
  /// Stores.
  public var stores: [Store]
}

extension NodeReport {
  /// Tells a status.
  public init(_ status: NodeStatus) {
    account = status.account.digest.hex
    device = status.device.hex
    directory = status.directory
    isRunning = status.isRunning
    listening = status.listening
    discovery = status.discovery
    isClockSynchronised = status.isClockSynchronised
    clock = ClockReport(status.clock)
    problems = status.problems.map(\.description)
    devices = status.devices.map {
      Device(
        id: $0.id.hex, name: $0.name, issuedMilliseconds: $0.issued, isSelf: $0.isSelf,
        isConnected: $0.isConnected, lastSeenMilliseconds: $0.lastSeenMilliseconds,
        wasHeard: $0.wasHeard, addresses: $0.addresses)
    }
    peers = status.peers.map {
      Peer(
        device: $0.device?.hex, address: $0.address, isDialled: $0.isDialled,
        clockOffsetMilliseconds: $0.clockOffsetMilliseconds, isExchanging: $0.isExchanging)
    }
    stores = status.stores.map {
      Store(
        identifier: $0.identifier.rawValue, usage: UsageReport($0.usage),
        hiddenKeys: $0.hiddenKeys, drafts: $0.drafts, refusals: $0.refusals,
        removals: $0.removals, quarantined: $0.quarantined,
        isLacking: $0.isLacking, missingChangeSets: $0.missing?.changeSets,
        missingEntries: $0.missing?.entries, digest: $0.digest.hex, heldBy: $0.heldBy.map(\.hex),
        policyMismatches: $0.policyMismatches.map(\.hex))
    }
  }
}
