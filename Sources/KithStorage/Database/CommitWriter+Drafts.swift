import KithCore
import KithCrypto

/// Drafts, and the clock kept beside them (`Docs/Decisions/database-layout.md`).
///
/// A commit that replaces a draft and sets the clock dirties one page: the new draft reuses the old
/// one's row, with the clock in it.
extension CommitWriter {
  /// Called before the drafts that will hold the clock.
  mutating func beginClock(_ mutations: [Mutation]) throws {
    var newest: HybridTime?
    for case .setClock(let clock) in mutations { newest = clock }
    guard let clock = newest else { return }
    hasNewClock = true
    if clock < index.drafts.clock {
      // The core never asks for this.
      try statements.run("UPDATE draft SET clock = 0")
      index.drafts.setClockBack(to: clock)
      try writeClock()
    } else {
      index.drafts.raiseClock(to: clock)
    }
  }

  /// Reuses a removed draft's row, if any.
  mutating func putDraft(
    _ store: StoreIdentifier, _ ordinal: UInt64, _ draft: [UInt8], _ seal: borrowing RowSeal
  ) throws {
    guard let row = index.stores[store] else { return }
    let key = DraftIndex.Key(store: row, ordinal: ordinal)
    let slot = DraftIndex.Slot(
      id: index.drafts[key] ?? freeDraftRows.popLast() ?? index.drafts.lastRow + 1,
      clock: index.drafts.clock)
    try statements.run(
      "INSERT OR REPLACE INTO draft VALUES (?, ?, ?, ?, ?, ?)",
      .integer(slot.id), .integer(row), ordinal.signed, slot.clock.rawValue.signed,
      RowChecksum.of(.integer(row), ordinal.signed, slot.clock.rawValue.signed),
      seal.seal(draft, at: .draft(store, ordinal)).blob)
    index.drafts.insert(slot, for: key)
    hasNewDraft = true
  }

  /// The next draft may reuse its row.
  mutating func removeDraft(_ store: StoreIdentifier, _ ordinal: UInt64) {
    guard let row = index.stores[store],
      let id = index.drafts.remove(DraftIndex.Key(store: row, ordinal: ordinal))
    else { return }
    freeDraftRows.append(id)
  }

  /// Writes the clock if no draft holds it.
  mutating func finishClock() throws {
    // A clock without a draft is written even if unchanged: it shows whether the disk accepts
    // writes again.
    if (hasNewClock && !hasNewDraft) || !index.drafts.isClockKept { try writeClock() }
  }

  private mutating func writeClock() throws {
    // SQLite writes no page for an unchanged row.
    if index.drafts.counterClock == index.drafts.clock {
      try statements.run("DELETE FROM counter WHERE store = 0")
    }
    try setCounter(0, [], 0, index.drafts.clock.rawValue)
    index.drafts.noteCounter()
  }
}
