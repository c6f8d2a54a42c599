import KithCore

/// The SQL statements of a device's database that run often.
enum SQL: Hashable {
  case begin
  case commit
  case rollback
  case put(RowTable)
  case remove(RowTable)
  case read(RowTable)

  var text: String {
    switch self {
    case .begin: "BEGIN IMMEDIATE"
    case .commit: "COMMIT"
    case .rollback: "ROLLBACK"
    case .put(let table): "INSERT OR REPLACE INTO \(table.name) VALUES (?, ?)"
    case .remove(let table): "DELETE FROM \(table.name) WHERE id = ?"
    case .read(let table): "SELECT id, sealed FROM \(table.name) WHERE id BETWEEN ? AND ?"
    }
  }
}

/// The prepared statements of a connection, each made when it is first needed.
final class Statements {
  let connection: Connection
  private var prepared: [SQL: Statement] = [:]

  init(_ connection: Connection) { self.connection = connection }

  private func callAsFunction(_ sql: SQL) throws(StorageError) -> Statement {
    if let known = prepared[sql] { return known }
    let statement = try connection.prepare(sql.text)
    prepared[sql] = statement
    return statement
  }

  /// Commits what `body` does durably, or nothing of it. Calls `written` as
  /// ``Connection/tell(_:during:)`` does.
  func transaction(
    written: () -> Void = {}, _ body: () throws(StorageError) -> Void
  ) throws(StorageError) {
    try self(.begin).run()
    do throws(StorageError) {
      try body()
      let commit = try self(.commit)
      try connection.tell(written) { () throws(StorageError) in try commit.run() }
    } catch {
      // SQLite may have rolled back. If `ROLLBACK` fails, the first error matters; the transaction
      // ends with the connection.
      if connection.isInTransaction { try? self(.rollback).run() }
      throw error
    }
  }

  func put(_ sealed: [UInt8], _ id: Int64, in table: RowTable) throws(StorageError) {
    try self(.put(table)).run(id: id, bytes: sealed)
  }

  func remove(_ id: Int64, from table: RowTable) throws(StorageError) {
    try self(.remove(table)).run(id: id)
  }

  /// Calls back with each row's id and sealed bytes, in order.
  func readAll(
    of table: RowTable, _ body: (Int64, [UInt8]) throws(StorageError) -> Void
  ) throws(StorageError) {
    try read(Int64.min...Int64.max, of: table) { (id, sealed) throws(StorageError) in
      try body(id, sealed)
      return true
    }
  }

  /// As ``readAll(of:_:)`` for the rows that have one of the ids, until the body returns false.
  func read(
    _ ids: ClosedRange<Int64>, of table: RowTable,
    _ body: (Int64, [UInt8]) throws(StorageError) -> Bool
  ) throws(StorageError) {
    try self(.read(table)).read(ids) { (row) throws(StorageError) in
      try body(row.integer(0), row.bytes(1))
    }
  }
}
