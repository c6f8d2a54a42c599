/// An order of a replica to its shell. A `persist` precedes each `send`, `durable`, `promote` and
/// `close` that depends on it; only a `sendEarly` may go before the sync. The shell may join persists
/// into one commit, but no later effect overtakes one. `view`, `report`, `accepted` and the refusals
/// depend on nothing.
package enum Effect: Sendable {
  /// Make the mutations durable, together.
  case persist([Mutation])
  case send(SessionID, [UInt8])
  /// Send a message with change sets. It may go once the commit before it is written, though not
  /// synced (``Round/earlySends``).
  case sendEarly(SessionID, [UInt8])
  /// Do something on a carrier, after all earlier effects.
  case carrier(CarrierID, CarrierOrder)
  /// Send a batch from storage, with its content at this position in the order (``StoredBatch``).
  case sendStored(SessionID, StoredBatch)
  /// Hand in `Input.drained`, once, when little of the session's earlier messages is left unsent.
  /// Until then the core sends no more batches there, so its limit holds whenever `writable` comes.
  case awaitDrain(SessionID)
  /// The peer proved to be a member and may use the whole protocol.
  case promote(SessionID)
  case close(SessionID, CloseReason)
  /// The transaction is visible; `durable` follows.
  case accepted(WriteID)
  case refused(WriteID, WriteError)
  /// The store was not opened, or keeps its old limits.
  case refusedStore(StoreIdentifier, OpenError)
  case refusedMembership(MembershipError)
  case durable(WriteID)
  /// All changes from one input become visible at once.
  case view(ViewChange)
  /// This joining device has pulled everything and can exist. Queued after all effects that make it
  /// durable.
  case pulledAll(SessionID)
  /// Evaluate statuses and waits again: peers' coverage or identity changed, or a transaction was
  /// refused.
  case progress
  /// All addresses of these devices; an empty list forgets them.
  case addresses([DeviceID: [String]])
  /// Replaces the members left behind, by id. The network dials them: the overlay may have come
  /// apart.
  case leftBehind([DeviceID])
  /// Hand in `Input.tick` at this time; replaces the earlier wake.
  case wake(atMonotonicMilliseconds: UInt64)
  case report(Report)
}

/// Why a session ends.
package enum CloseReason: String, Hashable, Sendable {
  /// Another session with the same device stays.
  case duplicate
  /// The peer is this process, or a clone.
  case ourselves
  /// The peer's records did not make it a member.
  case notMember
  /// This device or the peer was revoked.
  case revoked
  /// Records were exchanged; dial again for the rest.
  case membershipOnly
  /// The peer has joined, and dials again as a member.
  case joined
  case protocolViolation
  /// The session is older than a day; dial again.
  case aged
  /// The clocks differ too much to exchange stores, or the peer published too far ahead. Dial
  /// again: they may be right by then.
  case clocksDiffer
  /// This device keeps fewer sessions; the peer has others, or dials others.
  case surplus
  case silent
}

/// A change of one store's shown values. Applied in order, changes turn the old view into the new.
package struct ViewChange: Hashable, Sendable {
  package var store: StoreIdentifier
  /// Nil for the program's own write, which is not notified.
  package var reason: ChangeReason?
  /// In the order of keys; nil: the key shows nothing.
  package var changes: [(key: Key, value: EncodedValue?)]
  /// Keys whose writes by this program lost, in order.
  package var superseded: [Key]

  package init(
    store: StoreIdentifier, reason: ChangeReason?,
    changes: [(key: Key, value: EncodedValue?)], superseded: [Key] = []
  ) {
    self.store = store
    self.reason = reason
    self.changes = changes
    self.superseded = superseded
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.store == right.store && left.reason == right.reason
      && left.superseded == right.superseded && left.changes.count == right.changes.count
      && zip(left.changes, right.changes).allSatisfy { $0.key == $1.key && $0.value == $1.value }
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(store)
    hasher.combine(reason)
    for change in changes { hasher.combine(change.key) }
  }
}

/// Why the values that a store shows changed (`Docs/Protocol/drafts.md`).
public enum ChangeReason: String, Hashable, Sendable, CaseIterable {
  /// This program wrote. Only sequences that ask for own writes contain it.
  case ownWrite
  /// Another device or program wrote, or a write of this program was undone because it did not
  /// become durable.
  case externalChange
  /// Joining or signing in brought the account's data.
  case initialSyncChange
  /// The quota changed the shown values, or refused a draft.
  case quotaViolationChange
  /// The store now belongs to another account.
  case accountChange
}

/// Why a store was not opened (`Docs/CommandLine.md`).
package enum OpenError: Error, Hashable, Sendable {
  /// Negative, or above ``Policy/maximum``.
  case policyOutOfBounds(Policy)
  case tooManyStores(limit: Int)
}

/// Why a local transaction was not accepted (`Docs/CommandLine.md`).
package enum WriteError: Error, Hashable, Sendable {
  /// The device's writes would reach nobody.
  case revoked
  case unknownStore(StoreIdentifier)
  /// Empty, or longer than the policy allows.
  case invalidKey(key: String, bytes: Int, limit: Int)
  case valueTooLarge(key: String, bytes: Int, limit: Int)
  /// Not all values would be shown.
  case quotaExceeded(QuotaNumbers)
}

/// The numbers of a quota refusal.
package struct QuotaNumbers: Hashable, Sendable {
  /// Bytes shown if the write were accepted.
  package var askedBytes: Int
  /// The most bytes.
  package var limitBytes: Int
  /// Keys shown if the write were accepted.
  package var askedKeys: Int
  /// The most keys.
  package var limitKeys: Int

  package init(askedBytes: Int, limitBytes: Int, askedKeys: Int, limitKeys: Int) {
    self.askedBytes = askedBytes
    self.limitBytes = limitBytes
    self.askedKeys = askedKeys
    self.limitKeys = limitKeys
  }
}

/// For operators; never holds a key or a value.
package enum Report: Hashable, Sendable {
  /// Storage lacks data of kept change sets: a defect.
  case notStored(store: StoreIdentifier, count: Int)
  /// Change sets had a wrong signature or digest.
  case rejected(peer: DeviceID, count: Int)
  /// Soundly signed change sets came for another store than they were signed for.
  case misdirected(store: StoreIdentifier, peer: DeviceID, author: DeviceID, count: Int)
  /// Entries are validly signed but never valid, and were quarantined.
  case quarantined(store: StoreIdentifier, author: DeviceID, count: Int)
  /// Two change sets have one sequence: a copied directory.
  case fork(store: StoreIdentifier, device: DeviceID, sequence: UInt64)
  case clone(DeviceID)
  /// This database was restored, copied or damaged.
  case newIncarnation
  /// This device publishes no more.
  case tooManyIncarnations
  case divergence(store: StoreIdentifier, peer: DeviceID)
  /// The store does not sync with the peer.
  case policyMismatch(store: StoreIdentifier, peer: DeviceID, ours: Policy, theirs: Policy)
  /// The peer's clock minus ours; neither device follows the other.
  case clocksDiffer(
    peer: DeviceID, milliseconds: Int64, outcome: NodeStatus.ClockDifference.Outcome)
  /// After they differed.
  case clocksAgree(peer: DeviceID)
  /// The hybrid clock was ahead, but nothing ahead had left this device.
  case clockSetBack(milliseconds: Int64)
  /// The hybrid clock was ahead, and continues in this generation.
  case newGeneration(UInt8, milliseconds: Int64)
  /// The hybrid clock is ahead, but no later generation is left for now.
  case noGenerationLeft(UInt8)
  /// How far ahead of the time the peer published.
  case publishedAhead(peer: DeviceID, milliseconds: Int64)
  /// The peer published in a generation that does not count yet.
  case generationTooLate(peer: DeviceID, UInt8)
  /// The author's change sets exceed what a node keeps.
  case authorOverLimit(store: StoreIdentifier, author: DeviceID)
  case revoked(DeviceID, by: [DeviceID])
  /// Damaged rows were dropped. The stores lack data until another device returns it.
  case damaged(rows: Int, stores: [StoreIdentifier])
  /// A damaged store lacks nothing any more.
  case regained(store: StoreIdentifier)
  case lossAccepted(store: StoreIdentifier)
}
