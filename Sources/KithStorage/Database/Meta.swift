import GRDB
import KithCore

/// Rows of the table `meta`.
enum Meta {
  enum Name: String {
    case incarnation
    case keepsHistory = "keeps_history"
    case fileIdentity = "file_identity"
    case generations
    case device
    case carriers
  }

  static func set(_ name: Name, _ value: [UInt8], _ statements: Statements) throws {
    try statements.put(
      "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)",
      copy: "INSERT OR REPLACE INTO meta_copy VALUES (?, ?, ?)", .text(name.rawValue), value.blob)
  }

  /// Falls back to the copy.
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
  var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

  /// Nil unless there are eight bytes.
  init?(bigEndian bytes: some Collection<UInt8>) {
    guard bytes.count == 8 else { return nil }
    self = bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
