/// Whose store a ``KeyValueStore`` is at the moment, for what keeps notes of its own beside it.
package struct Standing: Hashable, Sendable {
  /// How often what stands behind the store was replaced.
  package var generation: Int
  /// The device; nil where another process has it open.
  package var device: DeviceID?

  /// Whether both are surely of one device.
  package func isSameDevice(as other: Standing) -> Bool {
    generation == other.generation || device != nil && device == other.device
  }
}
