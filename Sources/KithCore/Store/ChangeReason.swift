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
