import GRDB
package import KithCore
import KithCrypto

/// A replica's memory in one SQLite database, with one writer.
///
/// Calls run one after another, and block until the disk has answered. A commit that throws has
/// changed nothing; the next may succeed.
package final class SQLiteStorage: ReplicaStorage, @unchecked Sendable {
  // Unchecked: `state` is touched only inside `queue`, which runs one closure at a time.

  fileprivate struct State {
    let statements: Statements
    /// Nil before loading and after a failed commit.
    var index: RowIndex?
    /// The rows that opening read; nil once it was asked for, and after a commit.
    var outline: StorageOutline?
    /// A damaged write-ahead log lost commits, which was not noted yet.
    var lacksCommits: Bool
  }

  package let path: String

  private let queue: DatabaseQueue
  private let seal: RowSeal
  /// Nil for a copy in memory.
  private let origin: OriginGuard?
  private var state: State?

  /// Creates the database if `isNew`. Otherwise reads and checks all of it before the first write, and
  /// then its origin: a write may destroy more of a damaged file.
  init(
    path: String, key: consuming StorageKey, lock: DirectoryLock, isNew: Bool
  ) throws(StorageError) {
    self.path = path
    let reading = RowSeal(key: key.copy())
    seal = RowSeal(key: key)
    guard isNew || Files.exists(path) else { throw .damaged(path, "the database is missing") }
    let (identity, size) = try FileIdentity.read(path)
    // SQLite takes an empty file for a new database.
    guard isNew || size > 0 else { throw .damaged(path, "the database was emptied") }
    if !isNew {
      let header = try Files.head(path, count: DatabaseImage.headerBytes)
      guard DatabaseImage.isSound(header) else {
        throw .damagedDatabase(path, "the database's header is damaged")
      }
    }
    let lacksCommits = WriteAheadLog(path + "-wal")?.isDamaged ?? false
    let queue = try Connection.open(path)
    do {
      (state, origin) = try queue.writeWithoutTransaction { database in
        try Schema.prepare(database, path: path, isNew: isNew)
        var state = State(statements: Statements(database), lacksCommits: lacksCommits)
        if isNew { state.index = RowIndex() } else { try state.read(database, path, reading) }
        let origin = try OriginGuard(
          identity: identity, lock: lock, isNew: isNew,
          known: state.row(.storage(.fileIdentity), path, reading),
          generations: state.row(.storage(.generations), path, reading))
        if !origin.isCopy {
          let renewal = isNew ? origin.settle() : origin.renew()
          try state.write(renewal, database, path, reading)
          origin.publish()
        }
        return (state, origin)
      }
    } catch {
      try? queue.close()
      throw .database(path, error)
    }
    self.queue = queue
  }

  /// Reads a copy of the files in memory, which needs no room and no right to write. Commits change
  /// the copy alone.
  init(copying path: String, key: consuming StorageKey) throws(StorageError) {
    self.path = path
    let reading = RowSeal(key: key.copy())
    seal = RowSeal(key: key)
    guard Files.exists(path) else { throw .damaged(path, "the database is missing") }
    let lacksCommits = WriteAheadLog(path + "-wal")?.isDamaged ?? false
    let queue = try Connection.openCopy(of: DatabaseImage(path), path)
    do {
      state = try queue.writeWithoutTransaction { database in
        try Schema.prepare(database, path: path, isNew: false)
        var state = State(statements: Statements(database), lacksCommits: lacksCommits)
        try state.read(database, path, reading)
        return state
      }
    } catch {
      throw .database(path, error)
    }
    origin = nil
    self.queue = queue
  }

  /// Whether the database was copied or restored, until it takes a new incarnation.
  package var isCopy: Bool { queue.unsafeReentrantWrite { _ in origin?.isCopy ?? false } }

  /// Loads all that was committed, change sets by name. Checks the structure and every row.
  ///
  /// - Complexity: O(*n*) in the stored bytes; one box at a time is in memory.
  package func outline() throws(StorageError) -> StorageOutline {
    try withState { database, state in
      if let outline = state.outline.take() { return outline }
      try state.read(database, path, seal)
      guard let outline = state.outline.take() else { preconditionFailure("it was read") }
      return outline
    }
  }

  /// - Complexity: O(*n*) in their bytes.
  package func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] {
    try withState { database, state in
      if state.index == nil { try state.read(database, path, seal) }
      return try keys.map { try state.row($0, path, seal) }
    }
  }

  package func records() throws(StorageError) -> [[UInt8]] {
    try withState { _, state in
      var records: [RowKey: [UInt8]] = [:]
      for table in [RowTable.vital, .vitalCopy] {
        try state.statements.readAll(of: table) { _, sealed in
          if let row = seal.open(sealed), case .record = row.key { records[row.key] = row.bytes }
        }
      }
      return Array(records.values)
    }
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
  package func commit(_ mutations: [Mutation]) throws(StorageError) {
    let log = path + "-wal"
    if Files.room(path) ?? .max < Connection.tightRoom,
      Files.size(log) > Connection.shortLog
    {
      _ = emptyLog()
    }
    do throws(StorageError) {
      try commitOnce(mutations)
    } catch {
      guard error.code == .diskFull, Files.size(log) > 0, emptyLog() else { throw error }
      try commitOnce(mutations)
    }
  }

  private func commitOnce(_ mutations: [Mutation]) throws(StorageError) {
    try withState { database, state in
      let settles = mutations.contains {
        if case .put(.incarnation, _) = $0 { true } else { false }
      }
      let settling = settles ? origin?.settle() ?? [] : []
      try state.write(mutations + settling, database, path, seal)
      if mutations.contains(.remove(.damaged)) { state.lacksCommits = false }
      origin?.publish()
    }
  }

  /// Needs little space: most pages exist in the database. Returns whether it succeeded.
  private func emptyLog() -> Bool {
    (try? withState { database, _ in try database.execute(sql: Connection.emptyingLog) }) != nil
  }

  /// Empties the write-ahead log first. Later calls throw.
  package func close() throws(StorageError) {
    do {
      try queue.unsafeReentrantWrite { database in
        defer { state = nil }
        if let origin, !origin.isCopy {
          try state?.write(origin.renew(), database, path, seal)
          origin.publish()
        }
      }
    } catch {
      // The generation is renewed at the next opening.
    }
    if origin == nil {
      try? queue.close()
    } else {
      try Connection.close(queue, path: path)
    }
  }

  private func withState<Result>(
    _ body: (Database, inout State) throws -> Result
  ) throws(StorageError) -> Result {
    do {
      return try queue.unsafeReentrantWrite { database in
        guard var state = state.take() else { throw StorageError.closed(path) }
        defer { self.state = state }
        do { return try body(database, &state) } catch {
          throw StorageError.database(path, error, systemError: lastSystemError(of: database))
        }
      }
    } catch {
      throw .database(path, error)
    }
  }

  /// For tests that damage the database or fill the disk.
  func execute(_ sql: String) throws(StorageError) {
    try withState { database, state in
      state.outline = nil
      try database.execute(sql: sql)
    }
  }
}

extension SQLiteStorage.State {
  fileprivate mutating func read(
    _ database: Database, _ path: String, _ seal: borrowing RowSeal
  ) throws {
    let reader = try RowReader(
      database, statements, path: path, seal: seal, lacksCommits: lacksCommits)
    (index, outline) = (reader.index, reader.outline)
  }

  fileprivate func row(
    _ key: RowKey, _ path: String, _ seal: borrowing RowSeal
  ) throws -> [UInt8]? {
    guard let id = index?[key] else { return nil }
    for table in RowTable.allCases where table.original == key.table {
      if let row = try statements.sealed(id, in: table).flatMap({ seal.open($0) }), row.key == key {
        return row.bytes
      }
    }
    throw StorageError.damaged(path, "row \(id) of table \(key.table.name) is damaged")
  }

  /// After a failed commit the index is read again.
  fileprivate mutating func write(
    _ mutations: [Mutation], _ database: Database, _ path: String, _ seal: borrowing RowSeal
  ) throws {
    if index == nil { try read(database, path, seal) }
    // An outline has no rows of the storage itself.
    let isOfStorage = mutations.allSatisfy { if case .storage = $0.key { true } else { false } }
    if !isOfStorage { outline = nil }
    // Taken, so that it is not copied.
    var writer = RowWriter(statements, index: index.take() ?? RowIndex())
    try statements.run(.begin)
    do {
      try writer.write(mutations, seal: seal)
      try statements.run(.commit)
    } catch {
      // SQLite may have rolled back. If `ROLLBACK` fails, the first error matters; the transaction
      // ends with the connection.
      if database.isInsideTransaction { try? statements.run(.rollback) }
      throw error
    }
    self.index = writer.index
  }
}
