extension KeyValueStore {
  /// The device whose store this is, for what keeps notes of its own beside the store; nil where
  /// another process has it open.
  package var device: DeviceID? { (backing as? Engine)?.keys.id }
}
