package import KithCore

/// A device whose directory this process holds until ``close()``, or until the last reference is
/// released.
package final class OpenDevice: Sendable {
  package let keys: DeviceKeys
  package let storage: SQLiteStorage
  package let directory: String

  private let layout: Layout
  private let lock: DirectoryLock

  init(layout: Layout, keys: DeviceKeys, storage: SQLiteStorage, lock: DirectoryLock) {
    self.keys = keys
    self.storage = storage
    self.layout = layout
    self.lock = lock
    directory = layout.directory
  }

  /// Only this object's holder may remove the socket.
  package var controlSocketPath: String { layout.control }

  /// Releases the lock even if it throws.
  package func close() throws(StorageError) {
    defer { lock.release() }
    try storage.close()
  }
}
