import Foundation
import GRDB
import KithCore

/// The few facts that are there once: rows of the table `meta`.
enum Meta {
  enum Name: String {
    case incarnation
    case fileIdentity = "file_identity"
    case generations
    /// Whose database it is.
    case device
  }

  static func set(_ name: Name, _ value: [UInt8], _ statements: Statements) throws {
    let checksum = RowChecksum.of(.text(name.rawValue), value.blob)
    try statements.run(
      "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", .text(name.rawValue), value.blob, checksum)
    try statements.run(
      "INSERT OR REPLACE INTO meta_copy VALUES (?, ?, ?)", .text(name.rawValue), value.blob,
      checksum)
  }

  static func set(_ name: Name, _ incarnation: Incarnation, _ statements: Statements) throws {
    let bytes = withUnsafeBytes(of: incarnation.rawValue.bigEndian) { Array($0) }
    try set(name, bytes, statements)
  }

  /// A fact, from the copy where its row does not hold.
  static func get(_ name: Name, _ database: Database) throws -> [UInt8]? {
    for table in [Twin.meta.table, Twin.meta.copy] {
      for row in try CheckedRows(database, table).rows
      where row.isSound && row.columns[0].string == name.rawValue {
        return row.columns[1].bytes
      }
    }
    return nil
  }
}

extension UInt64 {
  /// The number of these eight bytes, the most significant first; nil if there are not eight.
  init?(bigEndian bytes: some Collection<UInt8>) {
    guard bytes.count == 8 else { return nil }
    self = bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
