import Foundation
import GRDB
import KithCore

/// The few facts that are there once: rows of the table `meta`.
enum Meta {
  enum Name: String {
    case incarnation
    case isProvisional = "is_provisional"
    case fileIdentity = "file_identity"
    case generations
    /// Whose database it is.
    case device
  }

  static func set(_ name: Name, _ value: [UInt8], _ statements: Statements) throws {
    try statements.run(
      "INSERT OR REPLACE INTO meta VALUES (?, ?)", .text(name.rawValue), value.blob)
  }

  static func set(_ name: Name, _ incarnation: Incarnation, _ statements: Statements) throws {
    let bytes = withUnsafeBytes(of: incarnation.rawValue.bigEndian) { Array($0) }
    try set(name, bytes, statements)
  }

  static func get(_ name: Name, _ database: Database) throws -> [UInt8]? {
    let value = try Data.fetchOne(
      database, sql: "SELECT value FROM meta WHERE name = ?", arguments: [name.rawValue])
    return value.map { Array($0) }
  }
}

extension UInt64 {
  /// The number of these eight bytes, the most significant first; nil if there are not eight.
  init?(bigEndian bytes: some Collection<UInt8>) {
    guard bytes.count == 8 else { return nil }
    self = bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
