import GRDB
import KithCore

/// The tables (`Docs/Decisions/database-layout.md`). All have one shape: a row id, and sealed bytes.
/// The table of a row says what follows if it is damaged.
enum RowTable: Int, CaseIterable {
  /// Needed for everything, so kept twice, under the same row ids.
  case vital
  case vitalCopy
  /// Only this device has it.
  case own
  /// Other devices give it back.
  case shared
  /// Nothing depends on it.
  case spare

  var name: String {
    switch self {
    case .vital: "vital"
    case .vitalCopy: "vital_copy"
    case .own: "own"
    case .shared: "shared"
    case .spare: "spare"
    }
  }

  /// A table and its copy have the same rows.
  var original: Self { self == .vitalCopy ? .vital : self }
}

extension RowKey {
  var table: RowTable {
    switch self {
    case .incarnation, .keepsHistory, .record, .storage: .vital
    case .clock, .addresses, .object, .damaged: .spare
    case .store(_, let key):
      switch key {
      case .policy, .adopted, .opened: .vital
      case .draft, .refusal: .own
      case .vector, .lost, .loss, .horizon, .changeSet, .entry: .shared
      case .pastValue: .spare
      }
    }
  }
}

/// The version is SQLite's `user_version`; `application_id` marks Kith's files.
enum Schema {
  /// "Kith" in ASCII.
  static let applicationID: Int32 = 0x4b69_7468

  /// No released version wrote 1 to 3.
  static let version = 4

  /// Makes the tables of a new database. Refuses one of another version, or that is not Kith's.
  static func prepare(_ database: Database, path: String, isNew: Bool) throws {
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
    guard isNew else {
      guard found == version else { throw StorageError.olderSchema(path) }
      return
    }
    try database.inTransaction(.immediate) {
      for table in RowTable.allCases {
        try database.execute(
          sql: """
            CREATE TABLE \(table.name) (
              id INTEGER NOT NULL PRIMARY KEY, sealed BLOB NOT NULL
            ) STRICT
            """)
      }
      try database.execute(sql: "PRAGMA application_id = \(applicationID)")
      try database.execute(sql: "PRAGMA user_version = \(version)")
      return .commit
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
      try prepare(database, path: "memory", isNew: true)
      return try body(database)
    }
  }
}
