import KithCore
import KithCrypto

/// The ids of all rows, in memory, so that commits look nothing up.
struct RowIndex {
  /// By the digest of the key's bytes, which are more.
  var ids: [Digest128: Int64] = [:]
  /// The highest row id of each table, also of rows that do not open.
  var last: [RowTable: Int64] = [:]
  /// Of the newest row.
  var stamp = SealedRow.Stamp()
  /// The rows that do not open.
  var damaged: [RowTable: [Int64]] = [:]

  subscript(key: RowKey) -> Int64? { ids[Blake2b.digest128(key.bytes)] }

  /// Takes the next row id at the end of a table.
  mutating func nextID(in table: RowTable) -> Int64 {
    last[table, default: 0] += 1
    return last[table, default: 0]
  }
}
