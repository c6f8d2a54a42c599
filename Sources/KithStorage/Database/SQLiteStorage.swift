package import KithCore
import KithCrypto
import Synchronization

/// A replica's memory in one SQLite database, with one writer.
///
/// Calls use the database one after another, on their callers' threads, and block until the disk has
/// answered; found rows are opened beside other calls, many on helper threads. A commit that throws
/// has changed nothing; the next may succeed.
package final class SQLiteStorage: ReplicaStorage {
  /// With less free space the log is kept short: four commits of a whole store of standard size.
  private static let tightSpace = 4 << 20

  private static let shortLog = 256 << 10

  package let path: String

  private let opener = Opener()
  private let seal: RowSeal
  /// Nil for a copy in memory.
  private let file: FileInUse?

  /// Nil once it is closed. Locked while the disk answers.
  private let database: Mutex<OpenDatabase?>

  /// Creates the database if `isNew`. Otherwise reads and checks all of it before the first write, and
  /// then its origin: a write may destroy more of a damaged file.
  init(
    path: String, key: consuming StorageKey, lock: DirectoryLock, isNew: Bool
  ) throws(StorageError) {
    self.path = path
    let seal = RowSeal(key: key)
    self.seal = seal
    guard isNew || Files.exists(path) else { throw .damaged(path, "the database is missing") }
    let (identity, size) = try FileIdentity.read(path)
    // SQLite takes an empty file for a new database.
    guard isNew || size > 0 else { throw .damaged(path, "the database was emptied") }
    if !isNew {
      try Files.checkWritable([path, path + "-wal"])
      let header = try Files.head(path, count: DatabaseImage.headerBytes)
      guard DatabaseImage.isSound(header) else {
        throw .damagedDatabase(path, "the database's header is damaged")
      }
    }
    let lacksCommits = WriteAheadLog(path + "-wal")?.isDamaged ?? false
    let database = OpenDatabase(try Schema.open(path), seal, lacksCommits: lacksCommits)
    try Schema.prepare(database.statements, isNew: isNew)
    if isNew { database.index = RowIndex() } else { try database.read() }
    let origin = OriginGuard(
      identity: identity, lock: lock, isNew: isNew,
      known: try database.row(.storage(.fileIdentity)),
      generations: try database.row(.storage(.generations)))
    if !origin.isCopy {
      try database.write(isNew ? origin.settle() : origin.renew())
      origin.publish()
    }
    database.origin = origin
    file = try FileInUse(path)
    self.database = Mutex(database)
  }

  /// Reads a copy of the files in memory, which needs no free space and no right to write. Commits
  /// change the copy alone.
  init(copying path: String, key: consuming StorageKey) throws(StorageError) {
    self.path = path
    let seal = RowSeal(key: key)
    self.seal = seal
    guard Files.exists(path) else { throw .damaged(path, "the database is missing") }
    let lacksCommits = WriteAheadLog(path + "-wal")?.isDamaged ?? false
    let database = OpenDatabase(try Schema.openCopy(of: path), seal, lacksCommits: lacksCommits)
    try Schema.prepare(database.statements, isNew: false)
    try database.read()
    file = nil
    self.database = Mutex(database)
  }

  /// Whether the database was copied or restored, or lost what it had written, until it takes a new
  /// incarnation.
  package var isCopy: Bool { database.withLock { $0?.origin?.isCopy ?? false } }

  /// Loads all that was committed, change sets by name. Checks the structure and every row.
  ///
  /// - Complexity: O(*n*) in the stored bytes; some 1 MiB of boxes at a time are in memory.
  package func outline() throws(StorageError) -> StorageOutline {
    try withDatabase { (database) throws(StorageError) in
      if let outline = database.outline.take() { return outline }
      try database.read()
      guard let outline = database.outline.take() else { preconditionFailure("it was read") }
      return outline
    }
  }

  /// Opens the rows while other threads may use the database.
  ///
  /// - Complexity: O(*n*) in their bytes.
  package func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] {
    let sought = keys.map(SoughtRow.init)
    let found = try withDatabase { (database) throws(StorageError) -> [FoundRow?] in
      if database.index == nil { try database.read() }
      return try database.find(sought)
    }
    let rows = seal.open(all: found)
    for (position, row) in found.enumerated() where rows[position] == nil {
      if let row { throw .damagedRow(path, row.id, keys[position].table) }
    }
    return rows
  }

  package func records() throws(StorageError) -> [[UInt8]] {
    try withDatabase { (database) throws(StorageError) in try database.records() }
  }

  /// The list of the carriers that only this device uses, as ``setCarriers(_:)`` got it; nil if it
  /// never did.
  package func carriers() throws(StorageError) -> [UInt8]? {
    try rows([.storage(.carriers)])[0]
  }

  /// Keeps the list, sealed: it has credentials. Durable on return.
  package func setCarriers(_ list: [UInt8]) throws(StorageError) {
    try commit([.put(.storage(.carriers), list)])
  }

  /// Applies mutations durably, all or none; a new incarnation ends being a copy.
  ///
  /// With little free space the write-ahead log is kept short: otherwise it fills the disk, and
  /// cannot be copied into the database. If the disk is full, the log is emptied and the commit
  /// retried once.
  ///
  /// - Complexity: O(*n* log *m*), and one `fdatasync`.
  package func commit(
    _ mutations: [Mutation], written: @Sendable () -> Void
  ) throws(StorageError) {
    // SQLite would go on, and the commit would count as durable.
    guard file?.isDeleted != true else { throw .deleted(path) }
    let log = path + "-wal"
    if Files.freeBytes(path) ?? .max < Self.tightSpace, Files.size(log) > Self.shortLog {
      _ = emptyLog()
    }
    let isWritten = Atomic(false)
    let note = { @Sendable in
      isWritten.store(true, ordering: .relaxed)
      written()
    }
    do throws(StorageError) {
      do throws(StorageError) {
        try commitOnce(mutations, written: note)
      } catch {
        // The log keeps what is written until the database counts as a copy: the next process would
        // give its numbers again.
        guard !isWritten.load(ordering: .relaxed), error.code == .diskFull, Files.size(log) > 0,
          emptyLog()
        else { throw error }
        try commitOnce(mutations, written: note)
      }
    } catch {
      // Others, or a backup of that moment, may have it.
      if isWritten.load(ordering: .relaxed) { database.withLock { $0?.origin?.disown() } }
      throw error
    }
  }

  private func commitOnce(
    _ mutations: [Mutation], written: @Sendable () -> Void
  ) throws(StorageError) {
    try withDatabase { (database) throws(StorageError) in
      let settles = mutations.contains {
        if case .put(.incarnation, _) = $0 { true } else { false }
      }
      let settling = settles ? database.origin?.settle() ?? [] : []
      try database.write(mutations + settling, written: written)
      if mutations.contains(.remove(.damaged)) { database.lacksCommits = false }
      // Another commit must not end a copy: only one with its new incarnation.
      if settles { database.origin?.publish() }
    }
  }

  /// Needs little space: most pages exist in the database. Returns whether it succeeded.
  private func emptyLog() -> Bool { (try? execute(Schema.emptyingLog)) != nil }

  /// Empties the write-ahead log first. Later calls throw. In a forked child it throws at once, because
  /// the parent writes on.
  package func close() throws(StorageError) {
    guard opener.isThisProcess else { throw .inherited(path) }
    try database.withLock { (slot) throws(StorageError) in
      guard let database = slot.take() else { throw .closed(path) }
      guard let origin = database.origin else { return }
      // If it fails, the generation is renewed at the next opening.
      if !origin.isCopy, (try? database.write(origin.renew())) != nil { origin.publish() }
      try database.statements.connection.execute(Schema.emptyingLog)
    }
  }

  private func withDatabase<Result: Sendable>(
    _ body: @Sendable (OpenDatabase) throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    guard opener.isThisProcess else { throw .inherited(path) }
    return try database.withLock { (database) throws(StorageError) in
      guard let database else { throw .closed(path) }
      return try body(database)
    }
  }

  /// Also for tests that damage the database or fill the disk.
  func execute(_ sql: String) throws(StorageError) {
    try withDatabase { (database) throws(StorageError) in
      database.outline = nil
      try database.statements.connection.execute(sql)
    }
  }
}

/// An open database with what was read of it. One thread at a time may use it.
private final class OpenDatabase {
  let statements: Statements
  private let seal: RowSeal
  /// Nil for a copy in memory.
  var origin: OriginGuard?
  /// Nil before loading and after a failed commit.
  var index: RowIndex?
  /// The rows that opening read; nil once it was asked for, and after a commit.
  var outline: StorageOutline?
  /// A damaged write-ahead log lost commits, which was not noted yet.
  var lacksCommits: Bool

  init(_ connection: Connection, _ seal: RowSeal, lacksCommits: Bool) {
    statements = Statements(connection)
    self.seal = seal
    self.lacksCommits = lacksCommits
  }

  private var path: String { statements.connection.path }

  func read() throws(StorageError) {
    let reader = try RowReader(statements, path: path, seal: seal, lacksCommits: lacksCommits)
    (index, outline) = (reader.index, reader.outline)
  }

  func row(_ key: RowKey) throws(StorageError) -> [UInt8]? {
    guard let found = try find([SoughtRow(key)])[0] else { return nil }
    guard let row = seal.open(found) else { throw .damagedRow(path, found.id, key.table) }
    return row
  }

  /// Finds rows in their order. Those with consecutive ids, as most of a change set, are read
  /// together.
  func find(_ sought: [SoughtRow]) throws(StorageError) -> [FoundRow?] {
    let ids = index?.ids ?? [:]
    var found = sought.map { row in
      ids[row.name].map { FoundRow(id: $0, key: row.key, copies: []) }
    }
    var start = 0
    while start < found.count {
      var end = start + 1
      defer { start = end }
      guard let first = found[start]?.id else { continue }
      let table = sought[start].table
      while end < found.count, sought[end].table == table,
        found[end]?.id == first + Int64(end - start)
      {
        end += 1
      }
      let last = first + Int64(end - start) - 1
      for copy in RowTable.allCases where copy.original == table {
        try statements.read(first...last, of: copy) { id, sealed in
          found[start + Int(id - first)]?.copies.append(sealed)
          return id < last
        }
      }
    }
    return found
  }

  func records() throws(StorageError) -> [[UInt8]] {
    var records: [RowKey: [UInt8]] = [:]
    for table in [RowTable.vital, .vitalCopy] {
      try statements.readAll(of: table) { _, sealed in
        if let row = seal.open(sealed), case .record = row.key {
          records[row.key] = Array(row.bytes)
        }
      }
    }
    return Array(records.values)
  }

  /// After a failed commit the index is read again.
  func write(
    _ mutations: [Mutation], written: () -> Void = {}
  ) throws(StorageError) {
    if index == nil { try read() }
    // An outline has no rows of the storage itself.
    let isOfStorage = mutations.allSatisfy { if case .storage = $0.key { true } else { false } }
    if !isOfStorage { outline = nil }
    // Taken, so that it is not copied.
    var writer = RowWriter(statements, index: index.take() ?? RowIndex())
    try statements.transaction(written: written) { () throws(StorageError) in
      try writer.write(mutations, seal: seal)
    }
    index = writer.index
  }
}

extension StorageError {
  fileprivate static func damagedRow(_ path: String, _ id: Int64, _ table: RowTable) -> Self {
    .damaged(path, "row \(id) of table \(table.name) is damaged")
  }
}
