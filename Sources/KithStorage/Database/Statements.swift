import GRDB
import GRDBSQLite

enum Argument {
  case integer(Int64)
  case blob([UInt8])
  case text(String)
  case null

  static func count(_ number: Int) -> Self { .integer(Int64(number)) }

  static func flag(_ isSet: Bool) -> Self { .integer(isSet ? 1 : 0) }
}

/// Prepared SQL statements: made by GRDB when first needed, then bound and stepped by SQLite's own
/// calls, without copies.
final class Statements {
  private let database: Database
  /// By the address of their text: a literal never moves.
  private var prepared: [UnsafePointer<UInt8>: Statement] = [:]

  init(_ database: Database) { self.database = database }

  /// For an SQL statement without rows, with all its parameters.
  func run(_ sql: StaticString, _ arguments: Argument...) throws { try run(sql, arguments) }

  /// Writes a row whose last column is the checksum of the given ones, also into a copy if there is
  /// one.
  func put(_ sql: StaticString, copy: StaticString? = nil, _ columns: Argument...) throws {
    let row = columns + [.integer(RowChecksum.of(columns))]
    try run(sql, row)
    if let copy { try run(copy, row) }
  }

  private func run(_ sql: StaticString, _ arguments: [Argument]) throws {
    let handle = try statement(sql)
    defer { sqlite3_reset(handle) }
    let code = Self.step(handle, arguments[...], 1)
    guard code == SQLITE_DONE else { throw error(code, sql) }
  }

  func read(
    _ sql: StaticString, _ numbers: Int64..., each: (StatementRow) throws -> Void
  ) throws {
    let handle = try statement(sql)
    defer { sqlite3_reset(handle) }
    for (place, number) in numbers.enumerated() {
      sqlite3_bind_int64(handle, Int32(place + 1), number)
    }
    var code = sqlite3_step(handle)
    while code == SQLITE_ROW {
      try each(StatementRow(handle: handle))
      code = sqlite3_step(handle)
    }
    guard code == SQLITE_DONE else { throw error(code, sql) }
  }

  private func statement(_ sql: StaticString) throws -> OpaquePointer {
    if let known = prepared[sql.utf8Start] { return known.sqliteStatement }
    let statement = try database.makeStatement(sql: sql.description)
    prepared[sql.utf8Start] = statement
    return statement.sqliteStatement
  }

  private func error(_ code: Int32, _ sql: StaticString) -> DatabaseError {
    DatabaseError(
      resultCode: ResultCode(rawValue: code),
      message: database.sqliteConnection.map { String(cString: sqlite3_errmsg($0)) },
      sql: sql.description)
  }

  /// Binds in nested closures, so that SQLite reads the bytes in place.
  private static func step(
    _ handle: OpaquePointer, _ arguments: ArraySlice<Argument>, _ position: Int32
  ) -> Int32 {
    guard let argument = arguments.first else { return sqlite3_step(handle) }
    let rest = arguments.dropFirst()
    switch argument {
    case .integer(let number): sqlite3_bind_int64(handle, position, number)
    case .null: sqlite3_bind_null(handle, position)
    case .blob(let bytes):
      return bytes.withUnsafeBytes { bytes in
        if let start = bytes.baseAddress, !bytes.isEmpty {
          sqlite3_bind_blob64(handle, position, start, UInt64(bytes.count), nil)
        } else {
          sqlite3_bind_zeroblob(handle, position, 0)
        }
        return step(handle, rest, position + 1)
      }
    case .text(let text):
      var text = text
      return text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { bytes in
          sqlite3_bind_text64(
            handle, position, bytes.baseAddress, UInt64(bytes.count), nil, UInt8(SQLITE_UTF8))
          return step(handle, rest, position + 1)
        }
      }
    }
    return step(handle, rest, position + 1)
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

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
}

extension UInt64 {
  /// As SQLite stores it: with the same bits.
  var signed: Argument { .integer(Int64(bitPattern: self)) }
}

extension [UInt8] {
  var blob: Argument { .blob(self) }
}
