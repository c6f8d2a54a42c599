internal import KithCore
internal import KithCrypto
package import KithStorage
internal import Synchronization

/// Opens directories, and turns their errors into ``KithError``.
enum DeviceStorage {
  /// Asks for the passphrase only if there is one. If `isForReading`, and the disk takes no writes,
  /// opens a copy in memory.
  static func open(
    _ directory: String, _ ask: PassphraseQuestion?, isForReading: Bool = false
  ) throws(KithError) -> OpenDevice {
    let passphrase = try Node.isUnderPassphrase(directory: directory) ? try ask?() : nil
    do throws(StorageError) {
      return try DeviceDirectory.open(at: directory, passphrase: passphrase)
    } catch {
      guard isForReading, error.code == .diskFull || error.code == .readOnly,
        let copy = try? DeviceDirectory.openCopy(
          of: directory, passphrase: passphrase, after: error)
      else { throw KithError(error) }
      return copy
    }
  }

  /// Checks that a device can be made there, and keeps others from it.
  static func reserve(_ directory: String) throws(KithError) -> DirectoryLock {
    try KithError.mapping(DeviceDirectory.reserve(directory))
  }

  /// Writes a device to disk; it does not exist until it is kept.
  static func prepare(
    _ directory: DirectoryLock, _ secrets: consuming DeviceSecrets, _ initial: [Mutation],
    _ passphrase: Passphrase?
  ) throws(KithError) -> PreparedDevice {
    do throws(StorageError) {
      return try DeviceDirectory.prepare(
        in: directory, secrets: secrets, initial: initial, passphrase: passphrase)
    } catch {
      throw KithError(error)
    }
  }

  /// As ``prepare(_:_:_:_:)``, on its own thread: a passphrase takes a second.
  static func prepareApart(
    _ directory: DirectoryLock, _ secrets: consuming DeviceSecrets, _ initial: [Mutation],
    _ passphrase: Passphrase?
  ) async throws(KithError) -> PreparedDevice {
    let given = Mutex<DeviceSecrets?>(secrets)
    let prepared = Mutex<PreparedDevice?>(nil)
    try await BlockingThread.run { () throws(KithError) in
      try prepared.withLock { prepared throws(KithError) in
        guard let secrets = given.withLock({ $0.take() }) else { return }
        prepared = try prepare(directory, secrets, initial, passphrase)
      }
    }
    guard let device = prepared.withLock({ $0.take() }) else {
      preconditionFailure("the device was prepared")
    }
    return device
  }

  static func install(_ prepared: consuming PreparedDevice) throws(KithError) {
    do throws(StorageError) {
      try prepared.open().close()
    } catch {
      throw KithError(error)
    }
  }

  /// Makes a device and closes it. `beforeExisting` is called when all is written, before the
  /// device exists; if it throws, no device is made.
  static func create(
    _ directory: DirectoryLock, _ secrets: consuming DeviceSecrets, _ initial: [Mutation],
    _ passphrase: Passphrase?, beforeExisting: () throws(KithError) -> Void = {}
  ) throws(KithError) {
    let prepared = try prepare(directory, secrets, initial, passphrase)
    do throws(KithError) {
      try beforeExisting()
    } catch {
      // The next use of the directory removes leftover files.
      try? prepared.discard()
      throw error
    }
    try install(prepared)
  }

  /// Loads a device's storage. A damaged store covers nothing; its vector counts as lost.
  static func load(_ device: OpenDevice) throws(KithError) -> Snapshot {
    let outline = try KithError.mapping(device.storage.outline())
    var snapshot = try KithError.mapping(device.storage.load(outline))
    guard outline.damage.loss != nil else { return snapshot }
    for (store, stored) in snapshot.stores {
      snapshot.stores[store]?.lost.merge(stored.vector, uniquingKeysWith: max)
      snapshot.stores[store]?.vector = [:]
    }
    return snapshot
  }

  /// The account whose genesis the device holds and of which it is a member.
  static func account(of device: OpenDevice) throws(KithError) -> AccountID {
    let encoded = try KithError.mapping(device.storage.records())
    let records = encoded.compactMap { try? Record(decoding: $0) }
    for case (let record, .genesis) in records.map({ ($0, $0.kind) }) {
      var roster = Roster(account: AccountID(record.id))
      _ = roster.learn(all: records)
      if roster.certificate(of: device.keys.id) != nil { return roster.account }
    }
    throw KithError(
      .notAMember,
      "The directory's records do not make its device a member of an account. Join again in "
        + "another directory.",
      device: device.keys.id, path: device.directory)
  }
}

/// Storage that reads only membership. It commits every mutation.
final class MembershipStorage: ReplicaStorage {
  private let storage: any ReplicaStorage

  init(_ storage: any ReplicaStorage) { self.storage = storage }

  /// The next full opening decides whether the directory is a copy, or the host ended.
  var isCopy: Bool { false }

  func outline() throws(StorageError) -> StorageOutline {
    var snapshot = try storage.outline().snapshot
    snapshot.stores = [:]
    snapshot.earlySending = nil
    return StorageOutline(snapshot)
  }

  func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?] { keys.map { _ in nil } }

  func commit(_ mutations: [Mutation], written: @Sendable () -> Void) throws(StorageError) {
    try storage.commit(mutations, written: written)
  }
}

extension Node {
  /// Whether the secrets of a device's directory are under a passphrase.
  ///
  /// - Throws: ``KithError`` with `missing` if there is no device, `unsafePermissions` or another
  ///   storage code.
  package static func isUnderPassphrase(directory: String) throws(KithError) -> Bool {
    try KithError.mapping(DeviceDirectory.isUnderPassphrase(directory))
  }

  /// Makes a new database of what can be read of a damaged one; `confirm` is asked first. Nil: the
  /// database is sound, or `confirm` said no. No process may have the directory open.
  ///
  /// - Throws: ``KithError`` with `damaged` if nothing can be read, `passphrase`, `inUse`, `missing` or
  ///   a storage code.
  package static func repair(
    directory: String, passphrase: PassphraseQuestion?, confirm: (RebuiltDatabase) -> Bool
  ) throws(KithError) -> RebuiltDatabase? {
    let known = try isUnderPassphrase(directory: directory) ? try passphrase?() : nil
    return try KithError.mapping(
      DeviceDirectory.repair(directory, passphrase: known, confirm: confirm))
  }

  /// Changes or removes (nil) the passphrase of a device's secrets. No process may have the
  /// directory open. It blocks while the passphrases are stretched.
  ///
  /// The secrets stay: an earlier reader of the plain file still has them
  /// (`Docs/Decisions/passphrase.md`).
  ///
  /// - Throws: ``KithError`` with `passphrase` if the old one is wrong, `inUse`, `missing` or a
  ///   storage code; then nothing has changed.
  package static func changePassphrase(
    directory: String, from old: PassphraseQuestion?, to new: Passphrase?
  ) throws(KithError) {
    let known = try isUnderPassphrase(directory: directory) ? try old?() : nil
    try KithError.mapping(DeviceDirectory.changePassphrase(at: directory, from: known, to: new))
  }
}
