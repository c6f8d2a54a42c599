import GRDB
import KithCore

/// Rows that differ from their checksums.
struct DamagedRows {
  /// Change sets, by row.
  var changeSets: [Int64] = []
  /// Change sets with a damaged entry in their row.
  var inlineEntries: [Int64] = []
  /// Further entries, by both halves of their row ids.
  var entries: [(changeSet: Int64, index: Int64)] = []
  /// Drafts with a damaged clock.
  var drafts: [Int64] = []
  var pastValues: [Int64] = []
  /// Whether an object's row is damaged: then all go, since every object can be read again.
  var hasObjects = false
  /// The sound rows of small tables with a damaged one.
  var remains: [String: [[Argument]]] = [:]

  /// Rewrites small tables and entries without a lookup, because the order of their trees may be
  /// damaged.
  func drop(_ database: Database) throws {
    func run(_ sql: String, for rows: [Int64]) throws {
      for row in rows { try database.execute(sql: sql, arguments: [row]) }
    }
    try run("DELETE FROM change_set WHERE id = ?", for: changeSets)
    try run(
      """
      UPDATE change_set SET entry_index = NULL, entry_box = NULL, entry_checksum = NULL
      WHERE id = ?
      """, for: inlineEntries)
    try run("UPDATE draft SET clock = 0 WHERE id = ?", for: drafts)
    try run("DELETE FROM past_value WHERE id = ?", for: pastValues)
    if hasObjects { try database.execute(sql: "DELETE FROM object") }
    for (table, rows) in remains { try CheckedRows.rewrite(database, table, rows) }
    if !entries.isEmpty { try dropEntries(database) }
  }

  private func dropEntries(_ database: Database) throws {
    try database.execute(
      sql: """
        CREATE TEMP TABLE damaged_entry (id INTEGER);
        CREATE TABLE sound_entry (\(Schema.entryColumns)) STRICT;
        """)
    for (changeSet, index) in entries {
      try database.execute(
        sql: "INSERT INTO temp.damaged_entry VALUES ((? << 32) | ?)", arguments: [changeSet, index])
    }
    try database.execute(
      sql: """
        INSERT OR REPLACE INTO sound_entry SELECT * FROM entry
          WHERE id NOT IN (SELECT id FROM temp.damaged_entry);
        DROP TABLE entry;
        ALTER TABLE sound_entry RENAME TO entry;
        DROP TABLE temp.damaged_entry;
        """)
  }
}
