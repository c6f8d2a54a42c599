package import KithCrypto

package struct SessionID: Hashable, Comparable, Sendable {
  /// The shell counts: 1, 2, 3 …
  package let rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

package struct WriteID: Hashable, Sendable {
  /// The shell counts: 1, 2, 3 …
  package let rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }
}

package struct Operation: Codable, Hashable, Sendable {
  package var key: String
  /// Nil removes the key.
  package var value: EncodedValue?

  package init(key: String, value: EncodedValue?) {
    self.key = key
    self.value = value
  }
}

/// A local transaction that is not published; one written while nobody was signed in is adopted.
package struct LocalWrite: Codable, Hashable, Sendable {
  /// The clock of its stamp. Before adoption, of the local stores' clock.
  package var clock: HybridTime
  package var operations: [Operation]

  package init(clock: HybridTime, operations: [Operation]) {
    self.clock = clock
    self.operations = operations
  }
}

/// A new device that a person has confirmed.
package struct Joiner: Hashable, Sendable {
  /// Its certificate, signed by both sides, and the epochs for it.
  package var records: [Record]
  package var address: String

  package init(records: [Record], address: String) {
    self.records = records
    self.address = address
  }
}

/// The device through which this one joins.
package struct Inviter: Hashable, Sendable {
  package var device: DeviceID
  /// The joiner takes it over.
  package var clock: HybridTime
  package var address: String

  package init(device: DeviceID, clock: HybridTime, address: String) {
    self.device = device
    self.clock = clock
    self.address = address
  }
}

/// The other side of a session, as the handshake showed it.
package struct SessionPeer: Hashable, Sendable {
  /// The proved Noise static key.
  package var transportKey: TransportPublicKey
  package var hello: Hello
  /// Whether this side dialled.
  package var isDialled: Bool
  /// `host:port`, with the peer's listening port if known.
  package var address: String
  /// Whether an older epoch's key was used: the session carries only membership to its end, for any
  /// peer.
  package var isMembershipOnly: Bool

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
  /// The first input, given once. `isCopy`: the database's file or machine is not the one on which
  /// it was made (`Docs/Protocol.md`, "Copies"), or a sync failed (``ReplicaStorage/isCopy``). `boot`:
  /// the run of the host; nil: unknown, so nothing is sent early.
  case start(isCopy: Bool, boot: BootID? = nil)
  /// Whether the kernel calls the clock synchronised (`adjtimex`), and whether hardware keeps the
  /// time while the host is off.
  case clockStatus(isSynchronised: Bool, hasHardware: Bool = true)
  /// A person confirms the time in use (`Docs/Protocol/clocks.md`, "Certainty").
  case acceptTime
  /// Keeps past values from now on, or deletes them and keeps none; stored until the next such
  /// input.
  case keepHistory(Bool)
  case open(StoreIdentifier, Policy)
  /// Visible at once, durable after the next flush.
  case write(WriteID, StoreIdentifier, [Operation])
  /// Transactions from before signing in, oldest first. Any entry of the account wins over them.
  /// Transactions that were adopted before are skipped. An empty list says that the local stores
  /// hold none any more.
  /// Durable after the next flush.
  case adopt(WriteID, StoreIdentifier, [LocalWrite])
  /// Before a commit: makes writes durable, and publishes drafts if possible.
  case flush
  case takeRefusals(StoreIdentifier, through: UInt64)
  /// A person accepts that missing data is lost.
  case acceptLoss(StoreIdentifier)
  /// Records that this device made. Only tests hand it in: pairing uses ``admit(_:_:)``.
  case learn([Record])
  /// May be refused with `Effect.refusedMembership`.
  case rename(DeviceID, String)
  /// `keeping`: the devices that stay of its ``Roster/dependents(of:)``. May be refused with
  /// `Effect.refusedMembership`.
  case revoke(DeviceID, keeping: Set<DeviceID>)
  /// A person has confirmed a new device. It pulls everything, and becomes a member with its last
  /// message.
  case admit(SessionID, Joiner)
  /// This new device pulls everything from its inviter. So far only its own records say that it is
  /// a member.
  case join(SessionID, Inviter)
  /// A person takes back an address, `host:port`.
  case forgetAddress(String)
  case connected(SessionID, SessionPeer)
  /// Decoded, with its signatures checked.
  case received(SessionID, InboundMessage)
  /// Whether the session can take more now.
  case writable(SessionID, Bool)
  /// The answer to `Effect.awaitDrain`.
  case drained(SessionID)
  case disconnected(SessionID)
  case carrier(CarrierID, CarrierEvent)
  /// Harmless if nothing is due.
  case tick
}
