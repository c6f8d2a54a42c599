/// An order of a replica to its shell. Effects come in sequence: a `persist` precedes every `send`,
/// `durable` and `close` that depends on it. The shell may join several persists into one commit,
/// but never lets a later effect overtake one. `view` and `report` depend on nothing.
package enum Effect: Sendable {
  /// Make these durable, together.
  case persist([Mutation])
  /// Send a message, which is encoded already.
  case send(SessionID, [UInt8])
  /// Send a batch whose change sets lie in storage, as they are at this place in the order: see
  /// ``StoredBatch``.
  case sendStored(SessionID, StoredBatch)
  /// Hand in `Input.room`, once, when little is left unsent of the messages sent on the session
  /// before. The core sends no more batches there until then. So the bytes under way stay within
  /// the core's limit, in any order in which the network's own `writable` comes.
  case awaitRoom(SessionID)
  /// The session's peer proved to be a member: it may use the whole protocol from here on.
  case promote(SessionID)
  /// End the session.
  case close(SessionID, CloseReason)
  /// The transaction holds and is visible; `durable` follows.
  case accepted(WriteID)
  /// The transaction changed nothing.
  case refused(WriteID, WriteError)
  /// The store was not opened, or keeps the limits that it has; nothing changed.
  case refusedStore(StoreIdentifier, OpenError)
  /// A change of membership was refused; nothing changed.
  case refusedMembership(MembershipError)
  /// The transaction survives a crash from here on.
  case durable(WriteID)
  /// The values that a program sees have changed. All changes from one input become visible at
  /// once.
  case view(ViewChange)
  /// All that the inviter has was pulled over a join's session: the new device can exist. Queued
  /// after all effects that make it durable.
  case pulledAll(SessionID)
  /// The coverage or the identity of peers has changed, or a transaction was refused: evaluate
  /// statuses and waits again.
  case progress
  /// Addresses at which devices may be met.
  case addresses([DeviceID: [String]])
  /// The members left behind, by id, instead of any named before: for long they are not known to
  /// cover data that does not change. The network dials them, because the overlay may have come
  /// apart.
  case leftBehind([DeviceID])
  /// Hand in `Input.tick` at this reading of the monotonic clock, instead of any asked for before.
  case wake(atMonotonicMilliseconds: UInt64)
  /// Something an operator may want to know.
  case report(Report)
}

/// Why the core ends a session.
package enum CloseReason: String, Hashable, Sendable {
  /// Another session with the same device stays.
  case duplicate
  /// The peer is this device itself, in this process or, as a clone, in another.
  case ourselves
  /// The peer is not a member, and its records did not make it one.
  case notMember
  /// One of both sides was revoked.
  case revoked
  /// Both sides exchanged their records; dial again for the rest.
  case membershipOnly
  /// The peer has joined and is a member now: it dials as one.
  case joined
  /// The peer broke the protocol.
  case protocolViolation
  /// The session is older than a day; dial again.
  case aged
  /// The clocks differ too much to exchange stores, or the peer published too far ahead; dial again,
  /// for they may be set right by then.
  case clocksDiffer
  /// More sessions than this device keeps; the peer has others, or dials others.
  case surplus
  /// Nothing was heard for too long.
  case silent
}

/// A change of what one store shows. Applied in order to the old view they give the new view.
package struct ViewChange: Hashable, Sendable {
  /// The store.
  package var store: StoreIdentifier
  /// Why; nil for the program's own write, which is not notified.
  package var reason: ChangeReason?
  /// New value by key in the order of keys; nil: the key shows nothing.
  package var changes: [(key: Key, value: EncodedValue?)]
  /// Keys whose writes by this program lost, in order.
  package var superseded: [Key]

  /// Makes a change.
  package init(
    store: StoreIdentifier, reason: ChangeReason?,
    changes: [(key: Key, value: EncodedValue?)], superseded: [Key] = []
  ) {
    self.store = store
    self.reason = reason
    self.changes = changes
    self.superseded = superseded
  }

  /// Compares all parts.
  package static func == (left: Self, right: Self) -> Bool {
    left.store == right.store && left.reason == right.reason
      && left.superseded == right.superseded && left.changes.count == right.changes.count
      && zip(left.changes, right.changes).allSatisfy { $0.key == $1.key && $0.value == $1.value }
  }

  /// Hashes store, reason and keys.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(store)
    hasher.combine(reason)
    for change in changes { hasher.combine(change.key) }
  }
}

/// Why a store was not opened (`Docs/CommandLine.md`).
package enum OpenError: Error, Hashable, Sendable {
  /// A limit is above ``Policy/maximum``'s, or negative.
  case policyOutOfBounds(Policy)
  /// The account has as many stores as a node takes.
  case tooManyStores(limit: Int)
}

/// Why a local transaction was not accepted (`Docs/CommandLine.md`).
package enum WriteError: Error, Hashable, Sendable {
  /// This device was revoked: its writes would reach nobody.
  case revoked
  /// The store was not opened.
  case unknownStore(StoreIdentifier)
  /// The key is empty, or longer than the policy allows.
  case invalidKey(key: String, bytes: Int, limit: Int)
  /// The value is larger than the policy allows.
  case valueTooLarge(key: String, bytes: Int, limit: Int)
  /// The drafts would take more bytes than a device keeps of them; removals are still accepted.
  /// Drafts are published once a peer is met.
  case tooManyDrafts(bytes: Int, limit: Int)
  /// The refusals that the program has not taken exceed the bytes that a device keeps of them;
  /// removals are still accepted.
  case refusalsNotTaken(bytes: Int, limit: Int)
  /// The values would not all be shown: the usage now, the usage asked for, and the limits.
  case quotaExceeded(QuotaNumbers)
}

/// Something that an operator may want to know. Never holds a key or a value.
package enum Report: Hashable, Sendable {
  /// Storage lacks data of this many change sets that a store keeps: a defect.
  case notStored(store: StoreIdentifier, count: Int)
  /// Change sets failed their signature or digest; the peer that sent them.
  case rejected(peer: DeviceID, count: Int)
  /// Soundly signed change sets came for another store than they were signed for; the peer that
  /// sent them, and their author.
  case misdirected(store: StoreIdentifier, peer: DeviceID, author: DeviceID, count: Int)
  /// Validly signed entries are wrong for ever and set aside; their author.
  case quarantined(store: StoreIdentifier, author: DeviceID, count: Int)
  /// Two change sets carry one sequence: a copied directory.
  case fork(store: StoreIdentifier, device: DeviceID, sequence: UInt64)
  /// This device runs a second time elsewhere.
  case clone(DeviceID)
  /// This database was restored or copied and goes on under a new incarnation.
  case newIncarnation
  /// This device has used up its incarnations.
  case tooManyIncarnations
  /// Equal vectors had different digests.
  case divergence(store: StoreIdentifier, peer: DeviceID)
  /// Peers have different limits for a store, which therefore does not sync.
  case policyMismatch(store: StoreIdentifier, peer: DeviceID, ours: Policy, theirs: Policy)
  /// Clocks differ by this many milliseconds (theirs less ours); why neither device follows the
  /// other.
  case clocksDiffer(
    peer: DeviceID, milliseconds: Int64, outcome: NodeStatus.ClockDifference.Outcome)
  /// The hybrid clock was ahead of the time by so many milliseconds, and was set back: nothing ahead
  /// had left this device.
  case clockSetBack(milliseconds: Int64)
  /// The hybrid clock was ahead of the time by so many milliseconds: it goes on in this generation.
  case newGeneration(UInt8, milliseconds: Int64)
  /// The hybrid clock is ahead of the time, and no generation after this one is left for now.
  case noGenerationLeft(UInt8)
  /// A peer published too far ahead of this clock.
  case publishedAhead(peer: DeviceID, milliseconds: Int64)
  /// An author's change sets in a store take more than a node keeps.
  case authorOverLimit(store: StoreIdentifier, author: DeviceID)
  /// A device was revoked, this one or another.
  case revoked(DeviceID, by: [DeviceID])
  /// This many rows of storage are damaged and were dropped; the stores that lack data until
  /// another device has given it back.
  case damaged(rows: Int, stores: [StoreIdentifier])
  /// A store in which damage was found lacks nothing any more.
  case regained(store: StoreIdentifier)
  /// A person accepted the loss of a store's missing data.
  case lossAccepted(store: StoreIdentifier)
}
