import KithCore
import KithCrypto

/// Past values. A full history drops a value for each that it keeps: the new one reuses the row, so
/// the commit dirties one page, as for drafts (`Docs/Decisions/database-layout.md`).
extension CommitWriter {
  mutating func putPastValue(
    _ store: StoreIdentifier, _ number: UInt64, _ value: [UInt8], _ seal: borrowing RowSeal
  ) throws {
    guard let row = index.stores[store] else { return }
    let key = DraftIndex.Key(store: row, ordinal: number)
    let id = index.pastValues[key] ?? freePastValueRows.popLast() ?? index.lastPastValue + 1
    try statements.run(
      "INSERT OR REPLACE INTO past_value VALUES (?, ?, ?, ?)", .integer(id), .integer(row),
      number.signed, seal.seal(value, at: .pastValue(store, number)).blob)
    index.lastPastValue = max(index.lastPastValue, id)
    index.pastValues[key] = id
  }

  mutating func removePastValue(_ store: StoreIdentifier, _ number: UInt64) {
    guard let row = index.stores[store],
      let id = index.pastValues.removeValue(forKey: DraftIndex.Key(store: row, ordinal: number))
    else { return }
    freePastValueRows.append(id)
  }
}
