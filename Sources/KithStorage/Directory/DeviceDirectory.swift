package import KithCore
package import KithCrypto

/// Creates and opens a device's directory.
///
/// | file | content |
/// | --- | --- |
/// | `lock` | locked by the process that has the directory open, and names it |
/// | `secrets` | the device's secrets (``DeviceSecrets``) |
/// | `kith.sqlite`, `-wal` | the database |
/// | `kith.sqlite.damaged-1` and so on | a damaged database that was rebuilt |
/// | `control` | the control socket, while a node runs |
///
/// The directory must have mode 0700 and its files 0600. All must belong to this user, and none may
/// be a symbolic link; otherwise opening fails with the command that repairs it. A directory
/// without Kith's files gets no such command.
///
/// Creation writes database and secrets as `*.new`, then renames the secrets, which creates the
/// device, then the database. After a crash before the first renaming there is no device; between
/// the two, the next `open` finishes. Existing files are never replaced.
package enum DeviceDirectory {
  /// Reserves a directory for a device that is not a member yet: private, locked, writable, without
  /// a device. Creates it if it is missing; otherwise its mode must be 0700.
  ///
  /// - Throws: `alreadyExists` if the directory holds a device or a part of one, `inUse`,
  ///   `unsafePermissions`, or an error of the file system.
  package static func reserve(_ path: String) throws(StorageError) -> DirectoryLock {
    try Files.makePrivateDirectory(path)
    let layout = Layout(path)
    let lock = try DirectoryLock(layout)
    for file in [layout.secrets, layout.database] where Files.exists(file) {
      throw StorageError(
        code: .alreadyExists, path: path,
        message: "already holds a device (\(file)); open it, or give another --directory")
    }
    // The remains of an unfinished creation.
    for file in [layout.newSecrets] + layout.newDatabaseFiles { try Files.remove(file) }
    try Files.makePrivateFile(layout.newDatabase)
    return lock
  }

  /// Writes a device into a reserved directory. It is durable, but exists only after
  /// ``PreparedDevice/open()``.
  ///
  /// Without `passphrase` the secrets are plaintext, in a file that only this user can read.
  package static func prepare(
    in reserved: DirectoryLock, secrets: consuming DeviceSecrets, initial: [Mutation],
    passphrase: Passphrase? = nil, stretching: Argon2Parameters = .moderate
  ) throws(StorageError) -> PreparedDevice {
    let layout = reserved.layout
    let database = try SQLiteStorage(
      path: layout.newDatabase, key: secrets.storage.copy(), lock: reserved, isNew: true)
    try database.commit(initial)
    try database.close()
    try Files.synchronize(layout.newDatabase)
    try SecretsFile(path: layout.secrets).write(
      secrets, passphrase: passphrase, stretching: stretching, temporary: layout.newSecrets)
    try Files.synchronize(layout.directory)
    return PreparedDevice(reserved: reserved, secrets: secrets)
  }

  /// Opens the device of a directory. If its database is damaged, and everything that only this device
  /// has can be read, the database is rebuilt (``OpenDevice/rebuilt``).
  ///
  /// Throws `missing` if there is none, `inUse` if another process has it open, and `passphrase` if
  /// one is needed or the given one is wrong.
  package static func open(
    at path: String, passphrase: Passphrase? = nil
  ) throws(StorageError) -> OpenDevice {
    let layout = Layout(path)
    let lock = try lock(layout)
    let secrets = try SecretsFile(path: layout.secrets).read(passphrase: passphrase)
    do throws(StorageError) {
      return try open(lock, secrets: secrets)
    } catch {
      guard let rebuilt = try rebuild(lock, secrets: secrets, after: error) else { throw error }
      return try open(lock, secrets: secrets, rebuilt: rebuilt)
    }
  }

  /// Opens a copy in memory, for reading on a disk that takes no writes, as an error told: commits are
  /// lost.
  ///
  /// Throws as ``open(at:passphrase:)``.
  package static func openCopy(
    of path: String, passphrase: Passphrase? = nil, after refusal: StorageError? = nil
  ) throws(StorageError) -> OpenDevice {
    let layout = Layout(path)
    try check(layout)
    let lock = try DirectoryLock(layout, isForReading: true)
    let secrets = try SecretsFile(path: layout.secrets).read(passphrase: passphrase)
    let keys = secrets.makeKeys()
    let storage = try SQLiteStorage(copying: layout.database, key: secrets.storage.copy())
    return OpenDevice(keys: keys, storage: storage, lock: lock, refusal: refusal)
  }

  /// Changes the passphrase of the secrets; nil removes it. No node may run.
  ///
  /// The old bytes are overwritten if the file system writes in place; copies and snapshots keep
  /// them (`Docs/Decisions/passphrase.md`).
  ///
  /// - Throws: `passphrase` if the old one is wrong, `missing`, `inUse`, or a storage code; then
  ///   nothing has changed.
  package static func changePassphrase(
    at path: String, from old: Passphrase?, to new: Passphrase?,
    stretching: Argon2Parameters = .moderate
  ) throws(StorageError) {
    let layout = Layout(path)
    let lock = try lock(layout)
    defer { lock.release() }
    let file = SecretsFile(path: layout.secrets)
    let secrets = try file.read(passphrase: old)
    do throws(StorageError) {
      try file.write(
        secrets, passphrase: new, stretching: stretching, temporary: layout.newSecrets)
    } catch {
      removeUnfinishedSecrets(layout)
      throw error
    }
    let remains = FileRemains(layout.secrets)
    try Files.rename(layout.newSecrets, to: layout.secrets)
    try Files.synchronize(path)
    remains.overwrite()
  }

  /// - Throws: `missing` if there is no device, or the error of reading the file.
  package static func isUnderPassphrase(_ path: String) throws(StorageError) -> Bool {
    let layout = Layout(path)
    try check(layout)
    return try SecretsFile(path: layout.secrets).isUnderPassphrase()
  }

  /// Removes a device's files. The secrets are overwritten if the file system writes in place. No
  /// process may have the device open.
  ///
  /// - Throws: `inUse`, or a storage code; then call it again.
  package static func remove(_ path: String) throws(StorageError) {
    let layout = Layout(path)
    guard Files.exists(path) else { return }
    let lock = try DirectoryLock(layout)
    defer { lock.release() }
    for file in [layout.secrets, layout.newSecrets] {
      let remains = FileRemains(file)
      try Files.remove(file)
      remains.overwrite()
    }
    for file in layout.databaseFiles + layout.newDatabaseFiles + layout.damaged + [layout.control] {
      try Files.remove(file)
    }
    try Files.synchronize(path)
  }

  package static func holdsDevice(_ path: String) -> Bool {
    Files.exists(Layout(path).secrets)
  }

  /// The first file that a device needs and that is missing or empty; nil: none. Not of a device
  /// whose creation was interrupted, which the next opening finishes.
  package static func missingFile(_ path: String) -> String? {
    let layout = Layout(path)
    if !Files.exists(layout.database), Files.exists(layout.newDatabase) { return nil }
    return [layout.secrets, layout.database].first { file in
      // Of one that this user may not read, opening tells more.
      !Files.exists(file) || (try? Files.head(file, count: 1))?.isEmpty == true
    }
  }

  /// Whether a directory holds a device.
  ///
  /// - Throws: `damaged` if it holds a database without the device's secrets, which a backup may have
  ///   left out: such a directory is not empty.
  package static func findsDevice(_ path: String) throws(StorageError) -> Bool {
    let layout = Layout(path)
    if Files.exists(layout.secrets) { return true }
    guard !Files.exists(layout.database) else { throw .lacksSecrets(layout) }
    return false
  }

  /// Whether a directory is a folder in which devices exchange objects, or one below it.
  package static func isPlaceOfCarrier(_ path: String) -> Bool {
    Files.exists(path + "/kith1") || path.split(separator: "/").contains("kith1")
  }

  /// The process that has the directory open, for messages to people.
  ///
  /// The lock still names an owner that has ended: call this only if another process is known to
  /// own the directory.
  package static func owner(of path: String) -> Int32? {
    let head = try? Files.head(Layout(path).lock, count: DirectoryLock.byteCount)
    return head.flatMap { DirectoryLock.content(of: $0).owner }
  }

  package static func controlSocketPath(_ path: String) -> String { Layout(path).control }

  static func lock(_ layout: Layout) throws(StorageError) -> DirectoryLock {
    try check(layout)
    let lock = try DirectoryLock(layout)
    try finishCreation(layout)
    removeUnfinishedSecrets(layout)
    return lock
  }

  /// All files must be private to this user.
  private static func check(_ layout: Layout) throws(StorageError) {
    guard Files.exists(layout.directory) else { throw missing(layout) }
    if try !Files.isPrivateDirectory(layout.directory) {
      // It may be another user's directory, which cannot be read.
      guard layout.isKiths || !Files.canLookInto(layout.directory) else { throw missing(layout) }
      try Files.checkPrivate(layout.directory, directory: true)
    }
    guard Files.exists(layout.secrets) else {
      guard Files.exists(layout.database) else { throw missing(layout) }
      throw .lacksSecrets(layout)
    }
    for file in layout.files { try Files.checkPrivateIfThere(file) }
  }

  /// They may hold the secrets in plaintext. If removing fails, for example on a read-only file
  /// system, the next opening does it.
  private static func removeUnfinishedSecrets(_ layout: Layout) {
    guard Files.exists(layout.newSecrets) else { return }
    let remains = FileRemains(layout.newSecrets)
    guard (try? Files.remove(layout.newSecrets)) != nil else { return }
    remains.overwrite()
  }

  private static func missing(_ layout: Layout) -> StorageError {
    StorageError(
      code: .missing, path: layout.directory,
      message: "holds no device; create or join an account there, or give another --directory")
  }

  /// Renames the database if creation ended between the two renamings.
  static func finishCreation(_ layout: Layout) throws(StorageError) {
    guard !Files.exists(layout.database), Files.exists(layout.newDatabase) else { return }
    try Files.rename(layout.newDatabase, to: layout.database)
    try Files.synchronize(layout.directory)
  }

  static func open(
    _ lock: DirectoryLock, secrets: borrowing DeviceSecrets, rebuilt: RebuiltDatabase? = nil
  ) throws(StorageError) -> OpenDevice {
    let keys = secrets.makeKeys()
    let storage = try SQLiteStorage(
      path: lock.layout.database, key: secrets.storage.copy(), lock: lock, isNew: false)
    return OpenDevice(keys: keys, storage: storage, lock: lock, rebuilt: rebuilt)
  }
}

/// A durable device that does not exist yet.
package struct PreparedDevice: ~Copyable {
  private let reserved: DirectoryLock
  private let secrets: DeviceSecrets

  init(reserved: DirectoryLock, secrets: consuming DeviceSecrets) {
    self.reserved = reserved
    self.secrets = secrets
  }

  package var keys: DeviceKeys { secrets.makeKeys() }

  /// For data that must be in the database before the device exists. Close it before ``open()``.
  package func openStorage() throws(StorageError) -> SQLiteStorage {
    try SQLiteStorage(
      path: reserved.layout.newDatabase, key: secrets.storage.copy(), lock: reserved,
      isNew: false)
  }

  /// Makes the device exist, by renaming its files.
  package consuming func open() throws(StorageError) -> OpenDevice {
    let layout = reserved.layout
    try Files.synchronize(layout.newDatabase)
    try Files.rename(layout.newSecrets, to: layout.secrets)
    try Files.synchronize(layout.directory)
    try DeviceDirectory.finishCreation(layout)
    return try DeviceDirectory.open(reserved, secrets: secrets)
  }

  package consuming func discard() throws(StorageError) {
    for file in [reserved.layout.newSecrets] + reserved.layout.newDatabaseFiles {
      try Files.remove(file)
    }
  }
}

struct Layout {
  let directory: String

  init(_ directory: String) { self.directory = directory }

  var secrets: String { directory + "/secrets" }
  var newSecrets: String { directory + "/secrets.new" }
  var database: String { directory + "/kith.sqlite" }
  var newDatabase: String { directory + "/kith.sqlite.new" }
  var lock: String { directory + "/lock" }
  var databaseFiles: [String] { Self.files(of: database) }
  var newDatabaseFiles: [String] { Self.files(of: newDatabase) }
  var control: String { directory + "/control" }
  /// By file names that only Kith uses. Of a device's files the database is created first.
  var isKiths: Bool {
    [database, newDatabase, directory + "/accounts.json", directory + "/local/kith.sqlite"]
      .contains(where: Files.exists)
  }
  /// By the name that the local stores' directory has.
  var isLocal: Bool { directory.hasSuffix("/local") }
  /// Files with secrets or data, or that decide about the owner.
  var files: [String] {
    [secrets, newSecrets, lock, database, database + "-wal"] + newDatabaseFiles
  }

  /// The names of damaged databases that were rebuilt, with their logs, in order.
  var damaged: [String] {
    (1...Self.mostDamaged).flatMap { number in
      ["", "-wal"].map { "\(database).damaged-\(number)\($0)" }
    }.filter(Files.exists)
  }

  /// The databases that are kept for a person to remove. A disk that damages more is broken.
  static let mostDamaged = 4

  /// Nil if so many are kept already.
  var nextDamaged: String? {
    (1...Self.mostDamaged).map { "\(database).damaged-\($0)" }.first { !Files.exists($0) }
  }

  /// That SQLite makes.
  private static func files(of database: String) -> [String] {
    ["", "-wal", "-shm", "-journal"].map { database + $0 }
  }
}
