package import KithCrypto

/// Names a session with a peer, as long as it lasts.
package struct SessionID: Hashable, Comparable, Sendable {
  /// The shell counts them: 1, 2, 3 …
  package let rawValue: UInt64

  /// Makes an id.
  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// By age.
  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Names a local transaction, so that its fate can be reported.
package struct WriteID: Hashable, Sendable {
  /// The shell counts them: 1, 2, 3 …
  package let rawValue: UInt64

  /// Makes an id.
  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }
}

/// One write of a local transaction.
package struct Operation: Codable, Hashable, Sendable {
  /// The key.
  package var key: String
  /// The value to set; nil removes the key.
  package var value: EncodedValue?

  /// Makes an operation.
  package init(key: String, value: EncodedValue?) {
    self.key = key
    self.value = value
  }
}

/// A transaction that was written while nobody was signed in.
package struct LocalWrite: Codable, Hashable, Sendable {
  /// When, by the clock of the local stores: each is later than the one before.
  package var clock: HybridTime
  /// The operations that it writes.
  package var operations: [Operation]

  /// Makes a write.
  package init(clock: HybridTime, operations: [Operation]) {
    self.clock = clock
    self.operations = operations
  }
}

/// A new device that a person has confirmed.
package struct Joiner: Hashable, Sendable {
  /// The records that make it a member: its certificate, signed by both sides, and the epochs for
  /// it.
  package var records: [Record]
  /// Its address.
  package var address: String

  /// Makes a joiner.
  package init(records: [Record], address: String) {
    self.records = records
    self.address = address
  }
}

/// The device through which this one joins.
package struct Inviter: Hashable, Sendable {
  /// The device.
  package var device: DeviceID
  /// Its hybrid clock, which is taken over.
  package var clock: HybridTime
  /// Its address.
  package var address: String

  /// Makes an inviter.
  package init(device: DeviceID, clock: HybridTime, address: String) {
    self.device = device
    self.clock = clock
    self.address = address
  }
}

/// The other side of an established session, as the handshake showed it.
package struct SessionPeer: Hashable, Sendable {
  /// The peer's proved Noise static key.
  package var transportKey: TransportPublicKey
  /// The peer's hello, in which it describes itself.
  package var hello: Hello
  /// Whether this side dialled.
  package var isDialled: Bool
  /// The peer's address, `host:port`; with its listening port if that is known.
  package var address: String
  /// Whether the session was made under an older epoch's pre-shared key: it carries membership
  /// only, for any peer, as long as it lasts.
  package var isMembershipOnly: Bool

  /// Makes a peer.
  package init(
    transportKey: TransportPublicKey, hello: Hello, isDialled: Bool, address: String,
    isMembershipOnly: Bool = false
  ) {
    self.transportKey = transportKey
    self.hello = hello
    self.isDialled = isDialled
    self.address = address
    self.isMembershipOnly = isMembershipOnly
  }
}

/// An event for a replica.
package enum Input: Sendable {
  /// The process has started, its node is about to serve. Given once, first. `isCopy`: the
  /// database's file or machine is another than the one it was made on (`Docs/Protocol.md`,
  /// "Entries and change sets").
  case start(isCopy: Bool)
  /// The kernel calls the clock synchronised, or no longer (`adjtimex`); and whether the host has
  /// hardware that keeps the time while it is off.
  case clockStatus(isSynchronised: Bool, hasHardware: Bool = true)
  /// A person says that the time that this device uses is right now (`Docs/Protocol.md`, "Clocks").
  case acceptTime
  /// The program opens a store.
  case open(StoreIdentifier, Policy)
  /// A local transaction: its writes are visible at once, and durable after the next flush.
  case write(WriteID, StoreIdentifier, [Operation])
  /// Transactions that were written while nobody was signed in, oldest first. Now they are the
  /// account's, and lose to any entry that it has. Those that were adopted before are passed over.
  /// An empty list says that the local stores hold none any more. Durable after the next flush.
  case adopt(WriteID, StoreIdentifier, [LocalWrite])
  /// The shell is ready to commit: makes writes durable, and publishes the drafts that can be
  /// published.
  case flush
  /// The program has taken the refusals up to this number.
  case takeRefusals(StoreIdentifier, through: UInt64)
  /// A person accepts the loss of a store's damaged data that is still missing.
  case acceptLoss(StoreIdentifier)
  /// New membership records of our own making (pairing).
  case learn([Record])
  /// A person gives a device another name. Refused with `Effect.refusedMembership`.
  case rename(DeviceID, String)
  /// A person revokes a device. Of the devices that are members only through it, these stay
  /// (``Roster/dependents(of:)``). Refused with `Effect.refusedMembership`.
  case revoke(DeviceID, keeping: Set<DeviceID>)
  /// A person has confirmed that a new device joins over a session: it pulls everything, and becomes a
  /// member by its last word.
  case admit(SessionID, Joiner)
  /// This device is new: it pulls everything from its inviter over a session. Its records say that it
  /// is a member, which nobody else knows yet.
  case join(SessionID, Inviter)
  /// A session was established.
  case connected(SessionID, SessionPeer)
  /// A message arrived on a session, decoded and with its signatures checked.
  case received(SessionID, InboundMessage)
  /// The session can take more, or cannot for now.
  case writable(SessionID, Bool)
  /// The answer to `Effect.awaitRoom`.
  case room(SessionID)
  /// The session is over.
  case disconnected(SessionID)
  /// The time asked for by `Effect.wake` has come; harmless at any other time.
  case tick
}
