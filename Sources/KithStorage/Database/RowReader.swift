import KithCore

/// Reads all committed rows; of change sets it keeps the names.
///
/// A row that does not open is left out and noted. If the replica needs it, the error names table and
/// row.
struct RowReader {
  private let statements: Statements
  private let path: String
  private(set) var index = RowIndex()
  private var snapshot = Snapshot()
  private var changeSets: [StoreIdentifier: [ChangeSetReference: [UInt32]]] = [:]
  private var damage = StorageDamage()
  private var latestClock = HybridTime.zero
  private var hasOpened = false

  /// `lacksCommits`: the write-ahead log lost some.
  init(
    _ statements: Statements, path: String, seal: RowSeal, lacksCommits: Bool
  ) throws(StorageError) {
    self.statements = statements
    self.path = path
    let check = try statements.connection.texts("PRAGMA quick_check(1)").first
    guard check == "ok" else {
      throw .damagedDatabase(path, "the database is damaged (\(check ?? "no answer"))")
    }
    try readVital(seal)
    for table in [RowTable.own, .shared, .spare] {
      var batch = RowBatch()
      try statements.readAll(of: table) { (id, sealed) throws(StorageError) in
        try note(id, in: table)
        batch.append(id, sealed)
        if batch.isFull { try add(batch.takeAll(), of: table, seal) }
      }
      try add(batch.takeAll(), of: table, seal)
    }
    if lacksCommits { noteLoss(rows: 0) }
    // The newest row may be damaged.
    if damage.rows > 0 { index.stamp.clock = latestClock }
    snapshot.clock = index.stamp.clock
  }

  var outline: StorageOutline {
    StorageOutline(snapshot: snapshot, changeSets: changeSets, damage: damage)
  }

  /// Reads the vital rows from the table or its copy, whichever has a row that opens, and writes it
  /// into the other. If the disk refuses, the next opening does it.
  private mutating func readVital(_ seal: RowSeal) throws(StorageError) {
    var sealed: [RowTable: [Int64: [UInt8]]] = [.vital: [:], .vitalCopy: [:]]
    for table in [RowTable.vital, .vitalCopy] {
      try statements.readAll(of: table) { (id, bytes) throws(StorageError) in
        try note(id, in: .vital)
        sealed[table]?[id] = bytes
      }
    }
    var damaged: Int64?
    for id in Set(sealed.values.flatMap(\.keys)).sorted() {
      let copies = [RowTable.vital, .vitalCopy].map { table -> (table: RowTable, row: SealedRow?) in
        (table, sealed[table]?[id].flatMap { seal.open($0) })
      }
      guard let sound = copies.first(where: { $0.row != nil }), let row = sound.row, add(row, id)
      else {
        damaged = damaged ?? id
        continue
      }
      for copy in copies where copy.row == nil {
        damage.rows += 1
        guard let bytes = sealed[sound.table]?[id] else { continue }
        try? statements.transaction { () throws(StorageError) in
          try statements.put(bytes, id, in: copy.table)
        }
      }
    }
    // The keys of another device open no row.
    guard hasOpened else { throw .anotherDevice(path) }
    if let damaged { throw damagedRow(damaged, .vital) }
  }

  private mutating func add(
    _ batch: RowBatch, of table: RowTable, _ seal: RowSeal
  ) throws(StorageError) {
    for (id, row) in zip(batch.ids, seal.open(all: batch.rows)) {
      guard let row, add(row, id) else {
        try leaveOut(id, table)
        continue
      }
    }
  }

  private mutating func note(_ id: Int64, in table: RowTable) throws(StorageError) {
    // Rows are numbered from 1. A damaged number would be followed by new ones.
    guard (1..<1 << 48).contains(id) else { throw damagedRow(id, table) }
    index.last[table] = max(index.last[table] ?? 0, id)
  }

  private func damagedRow(_ id: Int64, _ table: RowTable) -> StorageError {
    .damagedDatabase(path, "row \(id) of table \(table.name) is damaged")
  }

  private mutating func leaveOut(_ id: Int64, _ table: RowTable) throws(StorageError) {
    switch table {
    case .vital, .vitalCopy, .own: throw damagedRow(id, table)
    case .shared: noteLoss(rows: 1)
    case .spare: damage.rows += 1
    }
    index.damaged[table, default: []].append(id)
  }

  /// Every store may lack what is lost.
  private mutating func noteLoss(rows: Int) {
    damage.rows += max(1, rows)
    damage.loss = StoreLoss(rows: (damage.loss?.rows ?? 0) + rows)
  }

  /// Returns false if the key has a row already.
  private mutating func add(_ row: SealedRow, _ id: Int64) -> Bool {
    hasOpened = true
    guard index.ids[row.name] == nil else { return false }
    index.ids[row.name] = id
    latestClock = max(latestClock, row.stamp.clock)
    if row.stamp.number >= index.stamp.number { index.stamp = row.stamp }
    switch row.key {
    case .clock: break
    case .store(let store, .changeSet(let reference)):
      changeSets[store, default: [:]][reference, default: []] += []
    case .store(let store, .entry(let reference, let index)):
      changeSets[store, default: [:]][reference, default: []].append(index)
    default: snapshot[row.key] = Array(row.bytes)
    }
    return true
  }
}

/// Sealed rows that are opened together, as many as keep two processors busy for a millisecond.
private struct RowBatch {
  private static let mostRows = 512
  private static let mostBytes = 512 << 10

  private(set) var ids: [Int64] = []
  private(set) var rows: [[UInt8]] = []
  private var bytes = 0

  var isFull: Bool { rows.count >= Self.mostRows || bytes >= Self.mostBytes }

  mutating func append(_ id: Int64, _ sealed: [UInt8]) {
    ids.append(id)
    rows.append(sealed)
    bytes += sealed.count
  }

  mutating func takeAll() -> Self {
    defer { self = Self() }
    return self
  }
}
