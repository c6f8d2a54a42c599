package import KithCore
package import KithCrypto

/// A database that was made of the sound rows of a damaged one.
package struct RebuiltDatabase: Hashable, Sendable {
  /// The path of the damaged one.
  package let damaged: String
  /// The reason why SQLite or a checksum refused it.
  package let reason: String
  /// Whether rows may be missing that other devices have: they give them back.
  package let lacksShared: Bool
  /// Whether rows may be missing that only this device had: drafts, refusals, its own carriers.
  package let lacksOwn: Bool
  /// The unpublished writes that were found.
  package let drafts: Int
}

/// The structure of a database can be damaged so that SQLite refuses it, or a row of which no other
/// device has a copy.
///
/// A new database is made beside it from the rows that can be read (``Salvage``), and takes its place
/// at once: after a crash the directory has the old one, or the next opening finishes. The damaged one
/// is kept. The new one has no incarnation, so the device takes another.
extension DeviceDirectory {
  /// Rebuilds the database after an error of opening it, unless something would be lost that only this
  /// device has: drafts, refusals, its own carriers. Returns nil then, or if the error is another.
  static func rebuild(
    _ lock: DirectoryLock, secrets: borrowing DeviceSecrets, after error: StorageError
  ) throws(StorageError) -> RebuiltDatabase? {
    try rebuild(lock, secrets: secrets, after: error) { !$0.lacksOwn }
  }

  /// Rebuilds a damaged database for a person, who is asked first. Nil: the database is sound, or the
  /// person said no.
  ///
  /// Throws as ``open(at:passphrase:)``.
  package static func repair(
    _ path: String, passphrase: Passphrase? = nil, confirm: (RebuiltDatabase) -> Bool
  ) throws(StorageError) -> RebuiltDatabase? {
    let layout = Layout(path)
    let lock = try lock(layout)
    let secrets = try SecretsFile(path: layout.secrets).read(passphrase: passphrase)
    do throws(StorageError) {
      try open(lock, secrets: secrets).storage.close()
      return nil
    } catch {
      let isMeant = error.code == .damaged && error.path == layout.database
      guard isMeant else { throw error }
      var isAsked = false
      let rebuilt = try rebuild(lock, secrets: secrets, after: error) {
        isAsked = true
        return confirm($0)
      }
      guard rebuilt != nil || isAsked else { throw error }
      return rebuilt
    }
  }

  /// The paths of damaged databases that were rebuilt, without their logs.
  package static func damagedDatabases(_ path: String) -> [String] {
    Layout(path).damaged.filter { !$0.hasSuffix("-wal") }
  }

  private static func rebuild(
    _ lock: DirectoryLock, secrets: borrowing DeviceSecrets, after error: StorageError,
    if mayLose: (RebuiltDatabase) -> Bool
  ) throws(StorageError) -> RebuiltDatabase? {
    let layout = lock.layout
    guard error.code == .damaged, error.path == layout.database, Files.exists(layout.database)
    else { return nil }
    guard let damaged = layout.nextDamaged else {
      throw StorageError(
        code: .damaged, path: layout.database,
        message: "\(error.message). \(Layout.mostDamaged) damaged databases were rebuilt already: "
          + "check the disk, then remove \(layout.database).damaged-*")
    }
    let keys = secrets.makeKeys()
    let salvage = try Salvage(
      layout.database, of: keys.id, seal: RowSeal(key: secrets.storage.copy()))
    // Without them the device is nobody's.
    guard !salvage.snapshot.records.isEmpty else { return nil }
    let rebuilt = RebuiltDatabase(
      damaged: damaged, reason: error.reason, lacksShared: !salvage.hasAllShared,
      lacksOwn: !salvage.hasAllOwn, drafts: salvage.drafts)
    guard mayLose(rebuilt) else { return nil }
    for file in layout.newDatabaseFiles { try Files.remove(file) }
    try Files.makePrivateFile(layout.newDatabase)
    let storage = try SQLiteStorage(
      path: layout.newDatabase, key: secrets.storage.copy(), lock: lock, isNew: true)
    try storage.commit(salvage.mutations)
    try storage.close()
    try Files.synchronize(layout.newDatabase)
    try replace(layout, keeping: damaged)
    return rebuilt
  }

  /// The write-ahead log's commits go into the damaged file, so that a crash between the renamings
  /// loses none.
  private static func replace(_ layout: Layout, keeping damaged: String) throws(StorageError) {
    let log = layout.database + "-wal"
    if Files.size(log) > 0 {
      try DatabaseImage(layout.database).writeLogged(to: layout.database)
      try Files.rename(log, to: damaged + "-wal")
      try Files.synchronize(layout.directory)
    }
    // Also if it is empty: it would belong to the new database.
    try Files.remove(log)
    try Files.rename(layout.database, to: damaged)
    try finishCreation(layout)
  }
}
