package import KithCore

/// A device whose directory this process holds until ``close()``, or until the last reference is
/// released.
package final class OpenDevice: Sendable {
  package let keys: DeviceKeys
  package let storage: SQLiteStorage
  /// Nil unless opening found damage for which it made a new database.
  package let rebuilt: RebuiltDatabase?
  /// Why the disk takes no writes; then this is a copy in memory.
  package let refusal: StorageError?
  private let lock: DirectoryLock

  init(
    keys: DeviceKeys, storage: SQLiteStorage, lock: DirectoryLock, rebuilt: RebuiltDatabase? = nil,
    refusal: StorageError? = nil
  ) {
    self.rebuilt = rebuilt
    self.refusal = refusal
    self.keys = keys
    self.storage = storage
    self.lock = lock
  }

  package var directory: String { lock.layout.directory }

  /// Only this object's holder may remove the socket.
  package var controlSocketPath: String { lock.layout.control }

  /// Releases the lock even if it throws.
  package func close() throws(StorageError) {
    defer { lock.release() }
    try storage.close()
  }
}
