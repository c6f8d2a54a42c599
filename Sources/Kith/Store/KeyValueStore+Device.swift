extension KeyValueStore {
  /// The device whose store this is, for what keeps notes of its own beside the store.
  package var device: DeviceID { engine.keys.id }
}
