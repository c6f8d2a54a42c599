public import KithCore
public import KithCrypto

/// A device's directory: how one is made and opened.
///
/// | file | what |
/// | --- | --- |
/// | `lock` | held by the process that has the directory open; names it |
/// | `secrets` | the device's secrets (``DeviceSecrets``) |
/// | `kith.sqlite`, `-wal` | the database |
/// | `control` | the control socket, while a node runs |
///
/// The directory must be of mode 0700 and its files of mode 0600, all this user's and no links:
/// others are refused when it is opened, with the command that mends it. A directory without Kith's
/// files only holds no device: no command is given that would change it.
///
/// A device is made by preparing database and secrets under the names `*.new` and then renaming
/// the secrets, which is the moment from which the device exists, and the database. A crash before
/// leaves no device, one between the two is finished by the next `open`. Nothing that exists is
/// ever replaced.
public enum DeviceDirectory {
  /// Makes a device and opens it.
  ///
  /// - Parameters:
  ///   - path: The directory, which is made if it is missing; else its mode must be 0700.
  ///   - secrets: The new device's secrets.
  ///   - initial: What the database holds from its first moment.
  ///   - passphrase: What the secrets are put under; nil leaves them plain, in a file that only
  ///     this user can read.
  ///   - stretching: What a guess at the passphrase shall cost.
  /// - Returns: The device, open and locked.
  /// - Throws: `alreadyExists` if the directory holds a device or a part of one, `inUse`,
  ///   `unsafePermissions`, or what the file system reports.
  public static func create(
    at path: String, secrets: consuming DeviceSecrets, initial: [Mutation],
    passphrase: Passphrase? = nil, stretching: Argon2Parameters = .moderate
  ) throws(StorageError) -> OpenDevice {
    try create(
      in: reserve(path), secrets: secrets, initial: initial, passphrase: passphrase,
      stretching: stretching)
  }

  /// Makes sure that a device can be made in a directory, and keeps others from it: the directory
  /// is there, private, locked, writable and holds no device. For whoever has to know that before
  /// the device becomes a member of an account.
  ///
  /// Throws as ``create(at:secrets:initial:passphrase:stretching:)``.
  public static func reserve(_ path: String) throws(StorageError) -> ReservedDirectory {
    try Files.makePrivateDirectory(path)
    let layout = Layout(path)
    let lock = try DirectoryLock(directory: path)
    for file in [layout.secrets, layout.database] where Files.exists(file) {
      throw StorageError(
        code: .alreadyExists, path: path,
        message: "already holds a device (\(file)); open it, or give another --directory")
    }
    // What a creation left that did not come to its end.
    for file in [layout.newSecrets] + layout.newDatabaseFiles { try Files.remove(file) }
    try Files.makePrivateFile(layout.newDatabase)
    return ReservedDirectory(layout: layout, lock: lock)
  }

  /// Makes a device in a reserved directory and opens it; see
  /// ``create(at:secrets:initial:passphrase:stretching:)``.
  public static func create(
    in reserved: ReservedDirectory, secrets: consuming DeviceSecrets, initial: [Mutation],
    passphrase: Passphrase? = nil, stretching: Argon2Parameters = .moderate
  ) throws(StorageError) -> OpenDevice {
    try prepare(
      in: reserved, secrets: secrets, initial: initial, passphrase: passphrase,
      stretching: stretching
    ).open()
  }

  /// Writes a device down in a reserved directory, durably. It does not exist before
  /// ``PreparedDevice/open()``; see ``create(at:secrets:initial:passphrase:stretching:)``.
  public static func prepare(
    in reserved: ReservedDirectory, secrets: consuming DeviceSecrets, initial: [Mutation],
    passphrase: Passphrase? = nil, stretching: Argon2Parameters = .moderate
  ) throws(StorageError) -> PreparedDevice {
    let (layout, lock, path) = (reserved.layout, reserved.lock, reserved.layout.directory)
    let database = try SQLiteStorage(
      path: layout.newDatabase, device: secrets.makeKeys().id, key: secrets.storage.copy(),
      lock: lock, isNew: true)
    try database.commit(initial)
    try database.close()
    try Files.synchronize(layout.newDatabase)
    try SecretsFile(path: layout.secrets).write(
      secrets, passphrase: passphrase, stretching: stretching, temporary: layout.newSecrets)
    try Files.synchronize(path)
    return PreparedDevice(reserved: reserved, secrets: secrets)
  }

  /// Gives a prepared device its name, from which moment it exists, and opens it.
  fileprivate static func keep(
    _ reserved: ReservedDirectory, _ secrets: consuming DeviceSecrets
  ) throws(StorageError) -> OpenDevice {
    let layout = reserved.layout
    try Files.rename(layout.newSecrets, to: layout.secrets)
    try Files.synchronize(layout.directory)
    try finishCreation(layout)
    return try open(layout, secrets: secrets, lock: reserved.lock)
  }

  /// Opens the device of a directory.
  ///
  /// Throws `missing` where there is none, `inUse` where another process has it open, and
  /// `passphrase` where one is needed or the one given is wrong.
  public static func open(
    at path: String, passphrase: Passphrase? = nil
  ) throws(StorageError) -> OpenDevice {
    let layout = Layout(path)
    let lock = try lock(layout)
    let secrets = try SecretsFile(path: layout.secrets).read(passphrase: passphrase)
    return try open(layout, secrets: secrets, lock: lock)
  }

  /// Puts the secrets under another passphrase, or, with nil, under none. No node may run.
  ///
  /// The old file is replaced in one step, and its bytes are overwritten afterwards where the file
  /// system writes in place; what copies, snapshots and the disk itself keep of it cannot be reached
  /// (`Docs/Decisions/passphrase.md`).
  ///
  /// - Throws: `passphrase` where the old one is wrong, `missing`, `inUse`, or a storage code:
  ///   nothing has changed then.
  public static func changePassphrase(
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

  /// Whether the secrets of a directory are under a passphrase.
  ///
  /// - Throws: `missing` where there is no device, or what keeps the file from being read.
  public static func isUnderPassphrase(_ path: String) throws(StorageError) -> Bool {
    let layout = Layout(path)
    try check(layout)
    return try SecretsFile(path: layout.secrets).isUnderPassphrase()
  }

  /// Whether the directory holds a device, without opening it.
  public static func holdsDevice(_ path: String) -> Bool {
    Files.exists(Layout(path).secrets)
  }

  /// Why a directory that belongs to another user is refused, with the way to use it; nil where it
  /// belongs to this one, or is not there.
  package static func refusalOfForeign(_ path: String) -> StorageError? { Files.foreign(path) }

  /// Where the node of a directory listens for its command line.
  public static func controlSocketPath(_ path: String) -> String { Layout(path).control }

  /// Takes the lock of a directory that holds a device.
  private static func lock(_ layout: Layout) throws(StorageError) -> DirectoryLock {
    try check(layout)
    let lock = try DirectoryLock(directory: layout.directory)
    try finishCreation(layout)
    removeUnfinishedSecrets(layout)
    return lock
  }

  /// Checks that the directory holds a device, and that all its files are this user's alone.
  private static func check(_ layout: Layout) throws(StorageError) {
    guard Files.exists(layout.directory) else { throw missing(layout) }
    if try !Files.isPrivateDirectory(layout.directory) {
      // Another's directory that cannot be looked into may be meant.
      guard layout.isKiths || !Files.canLookInto(layout.directory) else { throw missing(layout) }
      try Files.checkPrivate(layout.directory, directory: true)
    }
    guard Files.exists(layout.secrets) else {
      guard Files.exists(layout.database) else { throw missing(layout) }
      throw .damaged(layout.secrets, "the file is missing, though the database is there")
    }
    for file in layout.files { try Files.checkPrivateIfThere(file) }
  }

  /// Takes away what a change of the passphrase left that did not come to its end: it may hold the
  /// secrets in the open. Where that cannot be done now, as on a file system that is read-only, the
  /// next opening does it.
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

  /// Gives the database its name where a creation ended between the two renames.
  private static func finishCreation(_ layout: Layout) throws(StorageError) {
    guard !Files.exists(layout.database), Files.exists(layout.newDatabase) else { return }
    try Files.rename(layout.newDatabase, to: layout.database)
    try Files.synchronize(layout.directory)
  }

  private static func open(
    _ layout: Layout, secrets: consuming DeviceSecrets, lock: DirectoryLock
  ) throws(StorageError) -> OpenDevice {
    let keys = secrets.makeKeys()
    let storage = try SQLiteStorage(
      path: layout.database, device: keys.id, key: secrets.storage.copy(), lock: lock,
      isNew: false)
    return OpenDevice(layout: layout, keys: keys, storage: storage, lock: lock)
  }
}

/// A directory that is this process's until the last reference goes, and holds no device yet.
public final class ReservedDirectory: Sendable {
  let layout: Layout
  let lock: DirectoryLock

  init(layout: Layout, lock: DirectoryLock) {
    self.layout = layout
    self.lock = lock
  }
}

/// A device that is written down whole and durably, and does not exist yet.
public struct PreparedDevice: ~Copyable {
  private let reserved: ReservedDirectory
  private let secrets: DeviceSecrets

  init(reserved: ReservedDirectory, secrets: consuming DeviceSecrets) {
    self.reserved = reserved
    self.secrets = secrets
  }

  /// The device's keys.
  public var keys: DeviceKeys { secrets.makeKeys() }

  /// Opens the database, for what is to be in it before the device exists. Close it before ``open()``.
  public func openStorage() throws(StorageError) -> SQLiteStorage {
    try SQLiteStorage(
      path: reserved.layout.newDatabase, device: keys.id, key: secrets.storage.copy(),
      lock: reserved.lock, isNew: false)
  }

  /// Makes the device exist, and opens it.
  public consuming func open() throws(StorageError) -> OpenDevice {
    try Files.synchronize(reserved.layout.newDatabase)
    return try DeviceDirectory.keep(reserved, secrets)
  }

  /// Takes away what was written: the device is not to be.
  public consuming func discard() throws(StorageError) {
    for file in [reserved.layout.newSecrets] + reserved.layout.newDatabaseFiles {
      try Files.remove(file)
    }
  }
}

/// The names of a device's files.
struct Layout {
  let directory: String

  init(_ directory: String) { self.directory = directory }

  var secrets: String { directory + "/secrets" }
  var newSecrets: String { directory + "/secrets.new" }
  var database: String { directory + "/kith.sqlite" }
  var newDatabase: String { directory + "/kith.sqlite.new" }
  var newDatabaseFiles: [String] { ["", "-wal", "-shm", "-journal"].map { newDatabase + $0 } }
  var control: String { directory + "/control" }
  /// Whether the directory is one of Kith's, by names that nobody else uses: of a device's files the
  /// database is made first.
  var isKiths: Bool {
    [database, newDatabase, directory + "/accounts.json", directory + "/local/kith.sqlite"]
      .contains(where: Files.exists)
  }
  /// What may hold secrets or data, and decides who owns them.
  var files: [String] {
    [secrets, newSecrets, directory + "/lock", database, database + "-wal"] + newDatabaseFiles
  }
}
