import KithCore
import KithCrypto

/// Drafts, and the clock kept beside them.
///
/// Without a peer every durable write is a commit that puts one draft, perhaps in place of an
/// earlier one, and sets the clock: three pages, if each had its own place. The new draft reuses
/// the old one's row, with the clock in it: one page.
extension CommitWriter {
  /// Notes the commit's clock, before the drafts that will hold it.
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

  /// Writes a draft into a removed draft's row, or a new one.
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
      seal.seal(.draft, store, ordinal, draft).blob)
    index.drafts.insert(slot, for: key)
    hasNewDraft = true
  }

  /// Forgets a draft; the next one may reuse its row.
  mutating func removeDraft(_ store: StoreIdentifier, _ ordinal: UInt64) {
    guard let row = index.stores[store],
      let id = index.drafts.remove(DraftIndex.Key(store: row, ordinal: ordinal))
    else { return }
    freeDraftRows.append(id)
  }

  /// Deletes rows that no new draft reused, and writes the clock if no draft holds it.
  mutating func finishDrafts() throws {
    for row in freeDraftRows { try statements.run("DELETE FROM draft WHERE id = ?", .integer(row)) }
    freeDraftRows = []
    // A clock without a draft is written even if unchanged: such a commit shows whether the disk
    // accepts writes again.
    if (hasNewClock && !hasNewDraft) || !index.drafts.isClockKept { try writeClock() }
    hasNewClock = false
    hasNewDraft = false
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
