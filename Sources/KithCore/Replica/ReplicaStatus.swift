public import KithCrypto

/// What a store uses of its policy, by what it shows.
public struct Usage: Hashable, Sendable {
  /// Encoded bytes of the values shown.
  public var bytes: Int
  /// Keys shown.
  public var keys: Int
  /// The limits.
  public var policy: Policy

  /// Makes a usage.
  public init(bytes: Int, keys: Int, policy: Policy) {
    self.bytes = bytes
    self.keys = keys
    self.policy = policy
  }
}

/// A newest write that the quota does not show (design, section 3).
public struct HiddenEntry: Hashable, Sendable {
  /// The key.
  public var key: Key
  /// The value that is not shown.
  public var value: EncodedValue
  /// Who wrote it, and when.
  public var stamp: Stamp

  /// Makes a hidden entry.
  public init(key: Key, value: EncodedValue, stamp: Stamp) {
    self.key = key
    self.value = value
    self.stamp = stamp
  }
}

/// What a replica knows of itself and its peers at one moment.
public struct ReplicaStatus: Sendable {
  /// A peer with a session.
  public struct Peer: Sendable {
    /// The session.
    public var session: SessionID
    /// The device, once its certificate is known.
    public var device: DeviceID?
    /// Where it is.
    public var address: String
    /// Whether this side dialled.
    public var isDialled: Bool
    /// Its clock less ours when it connected, in milliseconds.
    public var clockOffsetMilliseconds: Int64
    /// Whether stores are exchanged: it is a member, and clocks agree.
    public var isExchanging: Bool
  }

  /// A device of the account.
  public struct Device: Sendable {
    /// Its id.
    public var id: DeviceID
    /// The name in its certificate.
    public var name: String
    /// When it was certified, in milliseconds since 1970.
    public var issued: UInt64
    /// Whether this is the device that answers.
    public var isSelf: Bool
    /// Whether it has a session with us.
    public var isConnected: Bool
    /// When it was last heard, in milliseconds since 1970; nil: never since the start.
    public var lastSeenMilliseconds: UInt64?
    /// Addresses at which it may be met.
    public var addresses: [String]
  }

  /// A store.
  public struct Store: Sendable {
    /// Its identifier.
    public var identifier: StoreIdentifier
    /// What it uses.
    public var usage: Usage
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
    /// Whether its first pull is still to come.
    public var isProvisional: Bool
    /// The digest of its state.
    public var digest: Digest256
    /// Devices known to have everything that this device has published, this device not counted.
    public var heldBy: [DeviceID]
    /// Peers whose limits for it differ.
    public var policyMismatches: [DeviceID]
  }

  /// Sessions, by age.
  public var peers: [Peer]
  /// Members, by id.
  public var devices: [Device]
  /// Stores, by identifier.
  public var stores: [Store]
  /// Whether this device was revoked: it reads what it has, and that is all.
  public var isRevoked: Bool
  /// Whether the first pull of the device is still to come.
  public var isProvisional: Bool
  /// Whether the kernel calls the clock synchronised.
  public var isClockSynchronised: Bool
  /// Whether this device has used up its incarnations, and publishes no more.
  public var isBarren: Bool
  /// What was counted since the start.
  public var counters: Counters

  /// What was counted since the start.
  public struct Counters: Hashable, Sendable {
    /// Change sets that failed a signature or digest.
    public var rejected = 0
    /// Entries set aside for ever.
    public var quarantined = 0
    /// Forks seen.
    public var forks = 0
    /// Meetings with another process of this very device.
    public var clones = 0
    /// Equal vectors with different digests.
    public var divergences = 0
    /// Stored items that could not be opened.
    public var damaged = 0
  }
}
