import GRDB
import GRDBSQLite

/// The SQL statements of a device's database and of the yardstick.
enum SQL: Hashable {
  case begin
  case commit
  case rollback
  case put(RowTable)
  case remove(RowTable)
  case read(RowTable)
  case readAll(RowTable)
  case putBare

  var text: String {
    switch self {
    case .begin: "BEGIN IMMEDIATE"
    case .commit: "COMMIT"
    case .rollback: "ROLLBACK"
    case .put(let table): "INSERT OR REPLACE INTO \(table.name) VALUES (?, ?)"
    case .remove(let table): "DELETE FROM \(table.name) WHERE id = ?"
    case .read(let table): "SELECT sealed FROM \(table.name) WHERE id = ?"
    case .readAll(let table): "SELECT id, sealed FROM \(table.name)"
    case .putBare: "INSERT INTO bare (value) VALUES (?)"
    }
  }
}

/// Prepared SQL statements: made by GRDB when first needed, then bound and stepped by SQLite's own
/// calls, without copies.
final class Statements {
  private let database: Database
  private var prepared: [SQL: Statement] = [:]

  init(_ database: Database) { self.database = database }

  /// Runs a statement without rows. Its parameters are a row id, bytes, or both in this order.
  func run(_ sql: SQL, id: Int64? = nil, bytes: [UInt8]? = nil) throws {
    let handle = try statement(sql)
    defer { sqlite3_reset(handle) }
    if let id { sqlite3_bind_int64(handle, 1, id) }
    let code =
      (bytes ?? []).withUnsafeBytes { buffer in
        if bytes != nil {
          // Read in place until the next binding.
          sqlite3_bind_blob64(
            handle, id == nil ? 1 : 2, buffer.baseAddress, UInt64(buffer.count), nil)
        }
        return sqlite3_step(handle)
      }
    guard code == SQLITE_DONE else { throw error(code, sql) }
  }

  /// Calls back with each row of a statement, whose parameter is a row id, if it has one.
  func read(_ sql: SQL, id: Int64? = nil, each: (StatementRow) throws -> Void) throws {
    let handle = try statement(sql)
    defer { sqlite3_reset(handle) }
    if let id { sqlite3_bind_int64(handle, 1, id) }
    var code = sqlite3_step(handle)
    while code == SQLITE_ROW {
      try each(StatementRow(handle: handle))
      code = sqlite3_step(handle)
    }
    guard code == SQLITE_DONE else { throw error(code, sql) }
  }

  private func statement(_ sql: SQL) throws -> OpaquePointer {
    if let known = prepared[sql] { return known.sqliteStatement }
    let statement = try database.makeStatement(sql: sql.text)
    prepared[sql] = statement
    return statement.sqliteStatement
  }

  private func error(_ code: Int32, _ sql: SQL) -> DatabaseError {
    DatabaseError(
      resultCode: ResultCode(rawValue: code),
      message: database.sqliteConnection.map { String(cString: sqlite3_errmsg($0)) },
      sql: sql.text)
  }
}

/// Columns are read in place; bytes are copied once.
struct StatementRow {
  fileprivate let handle: OpaquePointer

  /// 0 if null.
  func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  /// Empty if null.
  func bytes(_ column: Int32) -> [UInt8] {
    guard let start = sqlite3_column_blob(handle, column) else { return [] }
    let count = Int(sqlite3_column_bytes(handle, column))
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }
}
