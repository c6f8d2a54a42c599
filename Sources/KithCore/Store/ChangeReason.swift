/// Why the values that a store shows changed (`Docs/Protocol.md`, "First sync").
public enum ChangeReason: String, Hashable, Sendable, CaseIterable {
  /// This program wrote. Only sequences that ask for own writes contain it.
  case ownWrite
  /// Another device or another program of this host wrote, or a write of this program was undone
  /// because it could not be made durable.
  case serverChange
  /// Joining or signing in brought the account's data.
  case initialSyncChange
  /// The quota changed the values shown, or refused a draft when it was to be published.
  case quotaViolationChange
  /// The store now belongs to another account.
  case accountChange
}
