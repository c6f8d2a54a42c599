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
    case .incarnation, .earlySending, .keepsHistory, .record, .storage: .vital
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

/// How databases are opened, and the tables of a device's. The version is SQLite's `user_version`;
/// `application_id` marks Kith's files.
enum Schema {
  /// "Kith" in ASCII.
  static let applicationID: Int32 = 0x4b69_7468

  /// No released version wrote 1 to 4.
  static let version = 5

  /// At 8 MiB a commit copies the write-ahead log into the database: few commits pay for it, and
  /// replay is quick.
  static let checkpointPages = 2_000

  static let emptyingLog = "PRAGMA wal_checkpoint(TRUNCATE)"

  /// Opens a file. The directory has one owner, so the connection keeps its locks: no locking calls,
  /// and no `-shm` file.
  static func open(_ path: String) throws(StorageError) -> Connection {
    let connection = try Connection(path: path)
    try connection.execute(
      """
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA wal_autocheckpoint = \(checkpointPages);
      PRAGMA cache_size = -4096;
      PRAGMA temp_store = MEMORY;
      PRAGMA trusted_schema = OFF;
      """)
    return connection
  }

  /// Opens a copy of a closed file in memory.
  static func openCopy(of path: String) throws(StorageError) -> Connection {
    var bytes = try DatabaseImage(path).bytes
    // There is no write-ahead log in memory.
    if bytes.count > 20 { (bytes[18], bytes[19]) = (1, 1) }
    return try Connection(inMemory: bytes, path: path)
  }

  /// Makes the tables of a new database. Refuses one of another version, or that is not Kith's.
  static func prepare(_ statements: Statements, isNew: Bool) throws(StorageError) {
    let (connection, path) = (statements.connection, statements.connection.path)
    let found = try connection.integer("PRAGMA user_version")
    let application = try connection.integer("PRAGMA application_id")
    guard found <= version else {
      if isFlipped(found), try columns(connection) == columns(new().connection) {
        throw .damagedDatabase(path, "the database's version is damaged")
      }
      throw .newerSchema(path, found: found, known: version)
    }
    let tables = try connection.integer("SELECT count(*) FROM sqlite_schema")
    guard isNew ? tables == 0 : (application == Int(applicationID) && found > 0) else {
      throw .damagedDatabase(path, "it is no database of Kith, or was emptied")
    }
    guard isNew else {
      guard found == version else { throw .olderSchema(path) }
      return
    }
    try statements.transaction { () throws(StorageError) in
      for table in RowTable.allCases {
        try connection.execute(
          """
          CREATE TABLE \(table.name) (
            id INTEGER NOT NULL PRIMARY KEY, sealed BLOB NOT NULL
          ) STRICT
          """)
      }
      try connection.execute("PRAGMA application_id = \(applicationID)")
      try connection.execute("PRAGMA user_version = \(version)")
    }
  }

  /// The root pages that the tables of a new database get.
  static func roots() throws(StorageError) -> [String: Int] {
    var roots: [String: Int] = [:]
    try new().connection.read("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'") {
      roots[$0.text(0)] = Int($0.integer(1))
    }
    return roots
  }

  /// Whether a version is ours but for one bit, and too high to be a later one.
  private static func isFlipped(_ found: Int) -> Bool {
    (found ^ version).nonzeroBitCount == 1 && found > version + 16
  }

  /// The tables with their columns. If they are those of this version, only a database's number is
  /// another.
  private static func columns(_ connection: Connection) throws(StorageError) -> [String] {
    try connection.texts(
      """
      SELECT tables.name || '.' || columns.name
      FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns ORDER BY 1
      """)
  }

  /// A new database in memory.
  private static func new() throws(StorageError) -> Statements {
    let statements = Statements(try Connection())
    try prepare(statements, isNew: true)
    return statements
  }
}
