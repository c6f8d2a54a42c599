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
    /// What opening read; nil once it was asked for, and after a commit.
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
    path: String, device: DeviceID, key: consuming StorageKey, lock: DirectoryLock, isNew: Bool
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
        try Schema.migrate(database, path: path, isNew: isNew)
        var state = State(statements: Statements(database), lacksCommits: lacksCommits)
        if isNew {
          try Meta.set(.device, device.bytes, state.statements)
        } else {
          try state.read(database, path, of: device, seal: reading)
        }
        let origin = try OriginGuard(
          identity: identity, database: database, lock: lock, statements: state.statements,
          isNew: isNew)
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
  init(
    copying path: String, device: DeviceID, key: consuming StorageKey
  ) throws(StorageError) {
    self.path = path
    let reading = RowSeal(key: key.copy())
    seal = RowSeal(key: key)
    guard Files.exists(path) else { throw .damaged(path, "the database is missing") }
    let lacksCommits = WriteAheadLog(path + "-wal")?.isDamaged ?? false
    let queue = try Connection.openCopy(of: DatabaseImage(path), path)
    do {
      state = try queue.writeWithoutTransaction { database in
        try Schema.migrate(database, path: path, isNew: false)
        var state = State(statements: Statements(database), lacksCommits: lacksCommits)
        try state.read(database, path, of: device, seal: reading)
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
    try withDatabase { database, statements in
      if let outline = state?.outline.take() { return outline }
      let reader = try read(database, statements)
      state?.index = reader.index
      return reader.outline
    }
  }

  /// - Complexity: O(*n*) in their bytes.
  package func changeSets(
    _ references: [ChangeSetReference], in store: StoreIdentifier
  ) throws(StorageError) -> [StoredChangeSet?] {
    try withDatabase { database, statements in
      if state?.index == nil { state?.index = try read(database, statements).index }
      guard let index = state?.index, let row = index.stores[store] else {
        return references.map { _ in nil }
      }
      return try references.map { reference in
        try index.changeSets[.init(store: row, reference: reference)].map {
          try read($0, reference, statements, leavingOut: index.damaged)
        }
      }
    }
  }

  private func read(
    _ slot: RowIndex.Slot, _ reference: ChangeSetReference, _ statements: Statements,
    leavingOut known: DamagedRows
  ) throws -> StoredChangeSet {
    var damaged: StorageError {
      .damaged(path, "row \(slot.id) of table change_set is damaged")
    }
    var found: ChangeSetRow?
    try statements.read(
      """
      SELECT device, incarnation, sequence, digest, header, signature, checksum, entry_index,
        entry_checksum, entry_box
      FROM change_set WHERE id = ?
      """, slot.id
    ) { found = ChangeSetRow($0, from: 0) }
    guard let row = found, row.reference == reference else { throw damaged }
    var changeSet = StoredChangeSet(header: row.header, signature: row.signature)
    if let index = slot.inlineIndex {
      guard let entry = row.entry, entry.index == index else { throw damaged }
      changeSet.entries[index] = entry.box
    }
    guard slot.hasMore else { return changeSet }
    try statements.read(
      """
      SELECT id & 4294967295, checksum, box FROM entry
      WHERE id BETWEEN ?1 << 32 AND (?1 << 32) | 4294967295
      """, slot.id
    ) { row in
      // Damaged entries are left out until they are dropped.
      let place = (slot.id, row.integer(0))
      guard !known.entries.contains(where: { $0 == place }) else { return }
      guard let entry = EntryRow(row, from: 0, of: reference) else { throw damaged }
      changeSet.entries[entry.index] = entry.box
    }
    return changeSet
  }

  package func records() throws(StorageError) -> [[UInt8]] {
    try withDatabase { database, _ in
      for table in [Twin.record.table, Twin.record.copy] {
        let rows = try CheckedRows(database, table)
        if rows.areSound { return rows.sound.compactMap { $0[1].bytes } }
      }
      throw StorageError.damaged(path, "a row of table record is damaged, and its copy too")
    }
  }

  /// The list of the carriers that only this device uses, as ``setCarriers(_:)`` got it; nil if it
  /// never did.
  package func carriers() throws(StorageError) -> [UInt8]? {
    try withDatabase { database, _ in
      guard let sealed = try Meta.get(.carriers, database) else { return nil }
      guard let list = seal.open(sealed, at: .carriers) else {
        throw StorageError.damaged(path, "the list of this device's own carriers does not open")
      }
      return list
    }
  }

  /// Keeps the list, sealed: it has credentials. Durable on return.
  package func setCarriers(_ list: [UInt8]) throws(StorageError) {
    try withDatabase { database, statements in
      try transaction(database, statements) {
        try Meta.set(.carriers, seal.seal(list, at: .carriers), statements)
      }
    }
  }

  /// Applies mutations in order, durably, all or none; `setIncarnation` ends being a copy.
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
    try withDatabase { database, statements in
      let index = try state?.index ?? read(database, statements).index
      // After a failed commit the index is read again.
      state?.index = nil
      state?.outline = nil
      var writer = CommitWriter(database, statements: statements, index: index)
      try transaction(database, statements) {
        try writer.apply(mutations, seal: seal)
        if mutations.contains(where: \.isSetIncarnation) { try origin?.settle(statements) }
      }
      state?.index = writer.index
      if mutations.contains(.dropDamaged) { state?.lacksCommits = false }
      origin?.publish()
    }
  }

  /// Needs little space: most pages exist in the database. Returns whether it succeeded.
  private func emptyLog() -> Bool {
    (try? withDatabase { database, _ in try database.execute(sql: Connection.emptyingLog) }) != nil
  }

  /// Empties the write-ahead log first. Later calls throw.
  package func close() throws(StorageError) {
    do {
      try queue.unsafeReentrantWrite { database in
        guard let statements = state?.statements else { return }
        if let origin, !origin.isCopy {
          try transaction(database, statements) { try origin.renew(statements) }
          origin.publish()
        }
        state = nil
      }
    } catch {
      queue.unsafeReentrantWrite { _ in state = nil }
    }
    if origin == nil {
      try? queue.close()
    } else {
      try Connection.close(queue, path: path)
    }
  }

  private func withDatabase<Result>(
    _ body: (Database, Statements) throws -> Result
  ) throws(StorageError) -> Result {
    do {
      return try queue.unsafeReentrantWrite { database in
        guard let statements = state?.statements else { throw StorageError.closed(path) }
        do { return try body(database, statements) } catch {
          throw StorageError.database(path, error, systemError: lastSystemError(of: database))
        }
      }
    } catch {
      throw .database(path, error)
    }
  }

  private func read(_ database: Database, _ statements: Statements) throws -> SnapshotReader {
    try SnapshotReader(
      database, statements, path: path, seal: seal, lacksCommits: state?.lacksCommits == true)
  }

  private func transaction(
    _ database: Database, _ statements: Statements, _ body: () throws -> Void
  ) throws {
    try statements.run("BEGIN IMMEDIATE")
    do {
      try body()
      try statements.run("COMMIT")
    } catch {
      // SQLite may have rolled back. If `ROLLBACK` fails, the first error matters; the transaction
      // ends with the connection.
      if database.isInsideTransaction { try? statements.run("ROLLBACK") }
      throw error
    }
  }

  /// For tests that damage the database or fill the disk.
  func execute(_ sql: String) throws(StorageError) {
    try withDatabase { database, _ in
      state?.outline = nil
      try database.execute(sql: sql)
    }
  }
}

extension SQLiteStorage.State {
  fileprivate mutating func read(
    _ database: Database, _ path: String, of device: DeviceID, seal: borrowing RowSeal
  ) throws {
    guard try Meta.get(.device, database) == device.bytes else {
      throw StorageError.anotherDevice(path)
    }
    let reader = try SnapshotReader(
      database, statements, path: path, seal: seal, lacksCommits: lacksCommits)
    (index, outline) = (reader.index, reader.outline)
  }
}

extension Mutation {
  fileprivate var isSetIncarnation: Bool {
    if case .setIncarnation = self { true } else { false }
  }
}
