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

/// A newest write that the quota does not show (`Docs/Protocol.md`, "What is shown").
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

/// Another device's clock that differs too much from the time here to exchange stores
/// (`Docs/Protocol.md`, "Clocks").
public struct ClockDifference: Hashable, Sendable {
  /// Why neither follows the other.
  public enum Outcome: String, Hashable, Sendable {
    /// Both clocks are called synchronised.
    case bothSynchronised
    /// Neither is.
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
  public var device: DeviceID
  /// Its clock less ours, in milliseconds.
  public var milliseconds: Int64
  /// Why neither follows the other.
  public var outcome: Outcome

  /// Makes a difference.
  public init(device: DeviceID, milliseconds: Int64, outcome: Outcome) {
    self.device = device
    self.milliseconds = milliseconds
    self.outcome = outcome
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
    /// Whether anything was ever heard of it since it became a member.
    public var wasHeard: Bool
    /// Addresses at which it may be met.
    public var addresses: [String]
  }

  /// Whose time counts, and who differs from it (`Docs/Protocol.md`, "Clocks").
  public struct Clock: Hashable, Sendable {
    /// Whether the kernel calls the host's clock synchronised.
    public var isSynchronised: Bool
    /// Whether the time that is used is known to be right.
    public var isCertain: Bool
    /// Whether the host's clock cannot be right.
    public var isWorthless: Bool
    /// The device whose time counts here; nil: the host's.
    public var adoptedFrom: DeviceID?
    /// The time that is used, in milliseconds since 1970.
    public var milliseconds: Int64
    /// That time less the host's, in milliseconds.
    public var adoptedMilliseconds: Int64
    /// The generation in which clocks go on: how often one was healed, and 1.
    public var generation: UInt8
    /// The latest generation that counts now.
    public var generationLimit: UInt8
    /// By how much the hybrid clock is ahead of the time, in milliseconds; 0 if that is less than
    /// peers may differ. Peers do not take what is written meanwhile.
    public var dataAheadMilliseconds: Int64
    /// Devices whose clock differed too much when they were last heard, by id.
    public var differences: [ClockDifference]
    /// What devices said of the time within the last hour, by id.
    public var peers: [PeerClock]
  }

  /// What another device said of the time.
  public struct PeerClock: Hashable, Sendable {
    /// The device.
    public var device: DeviceID
    /// Its time less ours, in milliseconds.
    public var milliseconds: Int64
    /// Whether its kernel calls its clock synchronised.
    public var isSynchronised: Bool
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
    /// How much of it was damaged in storage, which no device has given back yet, and whose loss nobody
    /// has accepted; nil: nothing. Which keys that is about cannot be told.
    public var missing: StoreLoss?
    /// Whether anything is missing so.
    public var isLacking: Bool { missing != nil }
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
  /// Whose time counts, and who differs from it.
  public var clock: Clock
  /// Whether the kernel calls the clock synchronised.
  public var isClockSynchronised: Bool { clock.isSynchronised }
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
    /// Stored items that were damaged, or could not be opened.
    public var damaged = 0
    /// Generations of clocks that this device started.
    public var generations = 0
  }
}
