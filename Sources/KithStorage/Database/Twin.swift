import Foundation
import GRDB

enum Twin: String {
  case meta, record, store

  var table: String { rawValue }
  var copy: String { rawValue + "_copy" }
}

/// The last column is the checksum of the others.
struct CheckedRows {
  struct Row {
    /// All but the checksum.
    var columns: [Argument]
    var isSound: Bool
  }

  private(set) var rows: [Row] = []

  init(_ database: Database, _ table: String) throws {
    let cursor = try GRDB.Row.fetchCursor(database, sql: "SELECT * FROM \(table)")
    while let row = try cursor.next() {
      let all = row.databaseValues.map(Argument.init)
      let columns = Array(all.dropLast())
      rows.append(Row(columns: columns, isSound: all.last?.number == RowChecksum.of(columns)))
    }
  }

  var areSound: Bool { rows.allSatisfy(\.isSound) }

  var sound: [[Argument]] { rows.filter(\.isSound).map(\.columns) }

  /// Works without a lookup, because the tree's order may be damaged.
  static func rewrite(_ database: Database, _ table: String, _ rows: [[Argument]]) throws {
    try database.execute(sql: "DELETE FROM \(table)")
    for row in rows {
      let all = row + [.integer(RowChecksum.of(row))]
      let places = all.map { _ in "?" }.joined(separator: ", ")
      try database.execute(
        sql: "INSERT INTO \(table) VALUES (\(places))",
        arguments: StatementArguments(all.map(\.databaseValue)))
    }
  }
}

extension Argument {
  var databaseValue: DatabaseValue {
    switch self {
    case .null: .null
    case .integer(let number): number.databaseValue
    case .blob(let bytes): Data(bytes).databaseValue
    case .text(let text): text.databaseValue
    }
  }
}
