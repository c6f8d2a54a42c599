import GRDB
import KithCore

/// The tables, and the migration of older ones (`Docs/Decisions/database-layout.md`).
///
/// The version is SQLite's `user_version`; `application_id` marks Kith's files. A 64-bit number is
/// stored as the signed number with the same bits.
///
/// - `counter`: the hybrid clock (store 0, no device) and the vectors. A draft's row may hold a
///   later clock.
/// - `change_set`: with one entry in the row itself (`entry_index`, `entry_box`). New rows belong
///   at the end, and are too large for WITHOUT ROWID.
/// - `entry`: the others. A row id is the change set's, shifted by 32 bits, and the entry's index,
///   so a box of up to 4,000 bytes needs no overflow page.
/// - `draft`: `clock` is its commit's clock (``DraftIndex``).
/// - `draft`, `refusal`, `past_value` and `object` hold sealed bytes (``RowSeal``).
/// - Every other row has a `checksum` (``RowChecksum``); a draft's covers its clock. A row names
///   another twice (`…_again`), so that damage is found in the right one.
/// - `meta`, `record` and `store` are needed for everything: each has a copy.
/// - No table has a further index, which could differ from it.
enum Schema {
  /// "Kith" in ASCII.
  static let applicationID: Int32 = 0x4b69_7468

  /// Of the table of further entries.
  static let entryColumns = """
    id INTEGER NOT NULL PRIMARY KEY, change_set INTEGER NOT NULL, checksum INTEGER NOT NULL,
    box BLOB NOT NULL
    """

  /// Of a table and its copy.
  private static let metaColumns =
    "name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL"
  private static let recordColumns =
    "digest BLOB NOT NULL PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER NOT NULL"
  private static let storeColumns = """
    id INTEGER NOT NULL PRIMARY KEY, identifier TEXT NOT NULL,
    total_bytes INTEGER NOT NULL, keys INTEGER NOT NULL,
    key_bytes INTEGER NOT NULL, value_bytes INTEGER NOT NULL, adopted INTEGER NOT NULL,
    is_opened INTEGER NOT NULL, checksum INTEGER NOT NULL
    """

  /// From the version that is its index to the next.
  static let migrations = [
    """
    CREATE TABLE meta (\(metaColumns)) STRICT, WITHOUT ROWID;
    CREATE TABLE meta_copy (\(metaColumns)) STRICT, WITHOUT ROWID;
    CREATE TABLE record (\(recordColumns)) STRICT, WITHOUT ROWID;
    CREATE TABLE record_copy (\(recordColumns)) STRICT, WITHOUT ROWID;
    CREATE TABLE address (
      device BLOB NOT NULL, position INTEGER NOT NULL, address TEXT NOT NULL,
      checksum INTEGER NOT NULL,
      PRIMARY KEY (device, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE store (\(storeColumns)) STRICT;
    CREATE TABLE store_copy (\(storeColumns)) STRICT;
    CREATE TABLE counter (
      store INTEGER NOT NULL, device BLOB NOT NULL, incarnation INTEGER NOT NULL,
      value INTEGER NOT NULL, checksum INTEGER NOT NULL,
      PRIMARY KEY (store, device, incarnation)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE lost (
      store INTEGER NOT NULL, device BLOB NOT NULL, incarnation INTEGER NOT NULL,
      value INTEGER NOT NULL, checksum INTEGER NOT NULL,
      PRIMARY KEY (store, device, incarnation)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE loss (
      store INTEGER NOT NULL PRIMARY KEY, change_sets INTEGER NOT NULL, entries INTEGER NOT NULL,
      is_accepted INTEGER NOT NULL, checksum INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE change_set (
      id INTEGER NOT NULL PRIMARY KEY, store INTEGER NOT NULL, store_again INTEGER NOT NULL,
      device BLOB NOT NULL, incarnation INTEGER NOT NULL, sequence INTEGER NOT NULL,
      digest BLOB NOT NULL, entry_index INTEGER, header BLOB NOT NULL, signature BLOB NOT NULL,
      checksum INTEGER NOT NULL, entry_checksum INTEGER, entry_box BLOB
    ) STRICT;
    CREATE TABLE entry (\(entryColumns)) STRICT;
    CREATE TABLE draft (
      id INTEGER NOT NULL PRIMARY KEY, store INTEGER NOT NULL, ordinal INTEGER NOT NULL,
      clock INTEGER NOT NULL, checksum INTEGER NOT NULL, sealed BLOB NOT NULL
    ) STRICT;
    CREATE TABLE refusal (
      store INTEGER NOT NULL, number INTEGER NOT NULL, sealed BLOB NOT NULL,
      PRIMARY KEY (store, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE past_value (
      id INTEGER NOT NULL PRIMARY KEY, store INTEGER NOT NULL, number INTEGER NOT NULL,
      sealed BLOB NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE object (
      carrier BLOB NOT NULL, name BLOB NOT NULL, sealed BLOB NOT NULL,
      PRIMARY KEY (carrier, name)
    ) STRICT, WITHOUT ROWID;
    """,
    """
    CREATE TABLE horizon (
      store INTEGER NOT NULL PRIMARY KEY, clock INTEGER NOT NULL, is_below INTEGER NOT NULL,
      unseen BLOB NOT NULL, checksum INTEGER NOT NULL
    ) STRICT;
    """,
  ]

  static var version: Int { migrations.count }

  /// Refuses a newer database, or one that is not Kith's.
  static func migrate(_ database: Database, path: String, isNew: Bool) throws {
    let found = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    let application = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
    guard found <= version else {
      if isFlipped(found), try isOurs(database) {
        throw StorageError.damagedDatabase(path, "the database's version is damaged")
      }
      throw StorageError.newerSchema(path, found: found, known: version)
    }
    let tables = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") ?? 0
    guard isNew ? tables == 0 : (application == applicationID && found > 0) else {
      throw StorageError.damagedDatabase(path, "it is no database of Kith, or was emptied")
    }
    for step in max(0, found)..<version {
      try database.inTransaction(.immediate) {
        try database.execute(sql: migrations[step])
        try database.execute(sql: "PRAGMA application_id = \(applicationID)")
        try database.execute(sql: "PRAGMA user_version = \(step + 1)")
        return .commit
      }
    }
  }

  /// The root pages that the tables of a new database get.
  static func roots() throws(StorageError) -> [String: Int] {
    do {
      return try withNew { database in
        let rows = try Row.fetchAll(
          database, sql: "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'")
        return Dictionary(rows.map { ($0[0], $0[1]) }) { first, _ in first }
      }
    } catch {
      throw .database("memory", error)
    }
  }

  /// Whether a version is ours but for one bit, and too high to be a later one.
  private static func isFlipped(_ found: Int) -> Bool {
    (found ^ version).nonzeroBitCount == 1 && found > version + 16
  }

  /// Whether a database has the tables and columns of this version: then only its number is another.
  private static func isOurs(_ database: Database) throws -> Bool {
    func columns(_ database: Database) throws -> [String] {
      try String.fetchAll(
        database,
        sql: """
          SELECT tables.name || '.' || columns.name
          FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns ORDER BY 1
          """)
    }
    return try columns(database) == withNew(columns)
  }

  private static func withNew<Result>(_ body: (Database) throws -> Result) throws -> Result {
    try DatabaseQueue().writeWithoutTransaction { database in
      try migrate(database, path: "memory", isNew: true)
      return try body(database)
    }
  }
}
