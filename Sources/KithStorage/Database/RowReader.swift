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
  /// The change set of the last row, with the entries that follow each other: most rows of one do.
  private var current: (store: StoreIdentifier, reference: ChangeSetReference, indices: [UInt32])?
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
    try reserve()
    for table in [RowTable.own, .shared, .spare] { try read(table, seal) }
    endChangeSet()
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
        try check(id, in: .vital)
        index.last[.vital] = max(index.last[.vital] ?? 0, id)
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

  /// Makes space for the names, because growing hashes all of them again. Removed rows leave gaps
  /// between ids, so the pages are a bound: a name takes 64 bytes at most.
  private mutating func reserve() throws(StorageError) {
    let last = try statements.connection.integer("SELECT max(id) FROM \(RowTable.shared.name)")
    let pages = try statements.connection.integer("PRAGMA page_count")
    index.ids.reserveCapacity(min(max(0, last), 4 * pages))
  }

  /// Helpers open a batch, while this thread adds the one before and reads the next. Errors of
  /// reading are thrown after those of all rows before.
  private mutating func read(_ table: RowTable, _ seal: RowSeal) throws(StorageError) {
    var opened: (ids: [Int64], rows: [SealedRow?]) = ([], [])
    var next = Result { () throws(StorageError) in try batch(of: table, from: .min) }
    while case .success(let batch) = next, let last = batch.ids.last {
      var added: Result<Void, StorageError> = .success(())
      let rows = seal.open(all: batch.rows) {
        added = Result { () throws(StorageError) in try add(opened, of: table) }
        next = Result { () throws(StorageError) in try self.batch(of: table, from: last + 1) }
      }
      try added.get()
      opened = (batch.ids, rows)
      index.last[table] = last
    }
    try add(opened, of: table)
    _ = try next.get()
  }

  /// The rows from an id on; empty at the end of the table.
  private func batch(of table: RowTable, from first: Int64) throws(StorageError) -> RowBatch {
    var batch = RowBatch()
    try statements.read(first...Int64.max, of: table) { (id, sealed) throws(StorageError) in
      try check(id, in: table)
      batch.append(id, sealed)
      return !batch.isFull
    }
    return batch
  }

  private mutating func add(
    _ opened: (ids: [Int64], rows: [SealedRow?]), of table: RowTable
  ) throws(StorageError) {
    for (id, row) in zip(opened.ids, opened.rows) {
      guard let row, add(row, id) else {
        try leaveOut(id, table)
        continue
      }
    }
  }

  private func check(_ id: Int64, in table: RowTable) throws(StorageError) {
    // Rows are numbered from 1. A damaged number would be followed by new ones.
    guard (1..<1 << 48).contains(id) else { throw damagedRow(id, table) }
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
    if let known = index.ids.updateValue(id, forKey: row.name) {
      index.ids[row.name] = known
      return false
    }
    latestClock = max(latestClock, row.stamp.clock)
    if row.stamp.number >= index.stamp.number { index.stamp = row.stamp }
    switch row.key {
    case .clock: break
    case .store(let store, .changeSet(let reference)): begin(reference, of: store)
    case .store(let store, .entry(let reference, let index)):
      begin(reference, of: store)
      current?.indices.append(index)
    default: snapshot[row.key] = Array(row.bytes)
    }
    return true
  }

  private mutating func begin(_ reference: ChangeSetReference, of store: StoreIdentifier) {
    guard current?.reference != reference || current?.store != store else { return }
    endChangeSet()
    current = (store, reference, [])
  }

  private mutating func endChangeSet() {
    guard let (store, reference, indices) = current.take() else { return }
    changeSets[store, default: [:]][reference, default: []] += indices
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
}
