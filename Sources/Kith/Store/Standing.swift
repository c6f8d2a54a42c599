/// The owner of a ``KeyValueStore`` at a moment, for code that keeps its own notes about the store.
package struct Standing: Hashable, Sendable {
  /// The number of times that the store's backing was replaced.
  package var generation: Int
  /// The device; nil if another process has its directory open.
  package var device: DeviceID?

  /// Returns whether both certainly belong to one device.
  package func isSameDevice(as other: Standing) -> Bool {
    generation == other.generation || device != nil && device == other.device
  }
}
