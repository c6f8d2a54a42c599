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

  /// Takes the next row id at the end of a table.
  mutating func nextID(in table: RowTable) -> Int64 {
    last[table, default: 0] += 1
    return last[table, default: 0]
  }
}

/// Writes a commit's rows into as few pages as possible: each dirty page is written before the commit
/// counts (`Docs/Decisions/database-layout.md`). Each commit has a writer of its own.
struct RowWriter {
  private let statements: Statements
  private(set) var index: RowIndex
  /// The row ids that the commit removes, in descending order. A new row of the table reuses the
  /// lowest: one page instead of two, and no half-empty page to balance.
  private var free: [RowTable: [Int64]] = [:]

  private struct Change {
    var mutation: Mutation
    /// Of its key.
    var bytes: [UInt8]
    var name: Digest128

    init(_ mutation: Mutation) {
      self.mutation = mutation
      bytes = mutation.key.bytes
      name = Blake2b.digest128(bytes)
    }
  }

  init(_ statements: Statements, index: consuming RowIndex) {
    self.statements = statements
    self.index = index
  }

  mutating func write(_ mutations: [Mutation], seal: RowSeal) throws(StorageError) {
    var changes = mutations.map(Change.init)
    var last: [Digest128: Int] = [:]
    for (position, change) in changes.enumerated() { last[change.name] = position }
    index.stamp.number += 1
    var writes: [Int] = []
    for (position, change) in changes.enumerated() where last[change.name] == position {
      switch change.mutation {
      case .put(.clock, let bytes): index.stamp.clock = HybridTime(row: bytes) ?? .zero
      case .put: writes.append(position)
      case .remove(.damaged): try removeDamaged()
      case .remove(let key):
        guard let id = index.ids.removeValue(forKey: change.name) else { continue }
        free[key.table, default: []].append(id)
      }
    }
    // Each row has the clock, so the clock needs a row only if no other is written. It is written even
    // if unchanged: that shows whether the disk accepts writes again.
    if writes.isEmpty {
      writes = [changes.endIndex]
      changes.append(Change(.put(.clock, index.stamp.clock.row)))
    }
    for table in free.keys { free[table]?.sort(by: >) }
    var random = SystemRandom()
    let prefix = random.draw(NoncePrefix.self)
    for position in writes {
      guard case .put(let key, let bytes) = changes[position].mutation else { continue }
      let (table, name) = (key.table, changes[position].name)
      let id = index.ids[name] ?? free[table]?.popLast() ?? index.nextID(in: table)
      let sealed = seal.seal(
        bytes, as: changes[position].bytes, index.stamp,
        nonce: BoxNonce(prefix: prefix, index: UInt32(position)))
      try write(sealed, id, in: table)
      index.ids[name] = id
    }
    for (table, ids) in free {
      for id in ids { try remove(id, from: table) }
    }
  }

  private func write(_ sealed: [UInt8], _ id: Int64, in table: RowTable) throws(StorageError) {
    try statements.put(sealed, id, in: table)
    if table == .vital { try statements.put(sealed, id, in: .vitalCopy) }
  }

  private func remove(_ id: Int64, from table: RowTable) throws(StorageError) {
    try statements.remove(id, from: table)
    if table == .vital { try statements.remove(id, from: .vitalCopy) }
  }

  private mutating func removeDamaged() throws(StorageError) {
    for (table, ids) in index.damaged {
      for id in ids { try statements.remove(id, from: table) }
    }
    index.damaged = [:]
  }
}
