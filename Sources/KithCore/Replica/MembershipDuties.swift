internal import KithCrypto

/// What a replica owes the account because of its roster: one member does it for all, after a random
/// wait, so that not all do it at once (`Docs/Protocol.md`, "Membership").
struct MembershipDuties: Sendable {
  /// When to look again whether something is still to be done, by the monotonic clock.
  var dueAt: UInt64?
  /// The revoked devices that were dealt with: their sessions are closed, their chains withheld.
  var revoked: Set<DeviceID> = []
  /// When epochs were made because the last one had leaked, by the monotonic clock, within an hour.
  var madeBecauseOfLeaks: [UInt64] = []
  /// Whether lockboxes were made last for which the roster has no room; until others' records come.
  var hasNoRoomForLockboxes = false
  /// Revoked devices that were sent their revocation since the start.
  var told: Set<DeviceID> = []
}

/// What was heard of a device in handshakes since the start.
struct HeardOfDevice: Sendable {
  /// Its version of Kith; empty where it did not say.
  var software = ""
  /// Its clock less ours, in milliseconds.
  var clockOffsetMilliseconds: Int64 = 0
  /// The epoch under which it was met last.
  var epoch: EpochID?
}
