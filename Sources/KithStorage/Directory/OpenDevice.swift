package import KithCore

/// A device whose directory this process has open and locked, until ``close()`` or until the last
/// reference is released.
package final class OpenDevice: Sendable {
  /// The device's keys.
  package let keys: DeviceKeys
  /// The storage of the device.
  package let storage: SQLiteStorage
  /// The directory.
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

  /// The path of the control socket of this device's node. Only the holder of this object may
  /// remove the socket.
  package var controlSocketPath: String { layout.control }

  /// Closes the database and releases the lock, even if it throws. Committed data stays.
  package func close() throws(StorageError) {
    defer { lock.release() }
    try storage.close()
  }
}
