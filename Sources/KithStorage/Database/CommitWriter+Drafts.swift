import KithCore
import KithCrypto

/// Drafts, and the clock that is kept beside them.
///
/// Where no peer is met, every durable write is a commit that puts one draft, which may have the
/// ordinal of one that it covers or make others go, and sets the clock: up to three pages, if each
/// lay where it belongs. The new draft takes the old one's row, and the clock with it: one page.
extension CommitWriter {
  /// Takes note of the clock that the commit sets, before the drafts that will hold it.
  mutating func beginClock(_ mutations: [Mutation]) throws {
    var newest: HybridTime?
    for case .setClock(let clock) in mutations { newest = clock }
    guard let clock = newest else { return }
    hasNewClock = true
    if clock < index.drafts.clock {
      // The core never asks for this, but what is asked for last holds.
      try statements.run("UPDATE draft SET clock = 0")
      index.drafts.setClockBack(to: clock)
      try writeClock()
    } else {
      index.drafts.raiseClock(to: clock)
    }
  }

  /// Writes a draft into its row, one that a removed draft has left, or a new one.
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

  /// Forgets a draft, and leaves its row to the next.
  mutating func removeDraft(_ store: StoreIdentifier, _ ordinal: UInt64) {
    guard let row = index.stores[store],
      let id = index.drafts.remove(DraftIndex.Key(store: row, ordinal: ordinal))
    else { return }
    freeDraftRows.append(id)
  }

  /// Deletes the rows that no new draft has taken, and writes the clock where no draft holds it.
  mutating func finishDrafts() throws {
    for row in freeDraftRows { try statements.run("DELETE FROM draft WHERE id = ?", .integer(row)) }
    freeDraftRows = []
    // A clock that comes without a draft is written even if it is kept already: with such a commit
    // the engine learns whether the disk takes anything.
    if (hasNewClock && !hasNewDraft) || !index.drafts.isClockKept { try writeClock() }
    hasNewClock = false
    hasNewDraft = false
  }

  private mutating func writeClock() throws {
    // SQLite writes no page for a row that stays the same.
    if index.drafts.counterClock == index.drafts.clock {
      try statements.run("DELETE FROM counter WHERE store = 0")
    }
    try setCounter(0, [], 0, index.drafts.clock.rawValue)
    index.drafts.noteCounter()
  }
}
