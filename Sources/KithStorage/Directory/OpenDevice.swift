public import KithCore

/// A device whose directory this process has open and locked, until ``close()`` or the last
/// reference goes.
public final class OpenDevice: Sendable {
  /// The device's keys.
  public let keys: DeviceKeys
  /// What the device remembers.
  public let storage: SQLiteStorage
  /// The directory.
  public let directory: String

  private let layout: Layout
  private let lock: DirectoryLock

  init(layout: Layout, keys: DeviceKeys, storage: SQLiteStorage, lock: DirectoryLock) {
    self.keys = keys
    self.storage = storage
    self.layout = layout
    self.lock = lock
    directory = layout.directory
  }

  /// Where this device's node listens for its command line. Only the holder of this object may
  /// remove what is there.
  public var controlSocketPath: String { layout.control }

  /// Closes the database and gives the lock back; what was committed stays. Also when it throws.
  public func close() throws(StorageError) {
    defer { lock.release() }
    try storage.close()
  }
}
