import Foundation
import GRDB

/// The prepared statements of one connection, made when first needed.
final class Statements {
  private let database: Database
  private var prepared: [String: Statement] = [:]

  init(_ database: Database) { self.database = database }

  /// Runs a statement; the number of arguments must be that of its parameters.
  func run(_ sql: String, _ arguments: (any DatabaseValueConvertible)?...) throws {
    let statement: Statement
    if let known = prepared[sql] {
      statement = known
    } else {
      statement = try database.makeStatement(sql: sql)
      prepared[sql] = statement
    }
    do {
      if !arguments.isEmpty {
        statement.setUncheckedArguments(StatementArguments(arguments))
      }
      try statement.execute()
    } catch {
      // A statement that failed cannot be used again.
      prepared[sql] = nil
      throw error
    }
  }
}

extension UInt64 {
  /// The signed number with the same bits, as SQLite keeps it.
  var signed: Int64 { Int64(bitPattern: self) }
}

extension [UInt8] {
  /// The bytes as a blob.
  var blob: Data { Data(self) }
}
