public import KithCore

// A store returns keys as `Key`, which compares bytes: as a `String`, two canonically equivalent keys
// would be one. These members take what it returns; for literals and texts there are the others.

extension KeyValueStore {
  /// Returns the value that a key shows, or nil.
  ///
  /// ```swift
  /// for key in store.keys { print(key, store.value(forKey: key) ?? "removed meanwhile") }
  /// ```
  ///
  /// - Complexity: O(1).
  public func value(forKey key: Key) -> PropertyListValue? { value(forKey: key.text) }

  /// Sets a key's value; nil removes the key.
  ///
  /// - Throws: ``KithError`` as for a text.
  /// - Complexity: As for a text.
  public func set(_ value: PropertyListValue?, forKey key: Key) throws(KithError) {
    try set(value, forKey: key.text)
  }

  /// Removes a key, if it is present.
  ///
  /// - Throws: ``KithError`` as for a text.
  public func removeValue(forKey key: Key) throws(KithError) {
    try removeValue(forKey: key.text)
  }

  /// Returns the values that a key showed before on this device, newest first.
  ///
  /// - Throws: ``KithError`` as for a text.
  /// - Complexity: As for a text.
  public func history(of key: Key, limit: Int = .max) throws(KithError) -> [PastValue] {
    try history(of: key.text, limit: limit)
  }

  /// Makes a key show a value of its history again, and returns once that survives a crash.
  ///
  /// ```swift
  /// if let past = try store.history(limit: 1).first { try await store.undo(past.key) }
  /// ```
  ///
  /// - Throws: ``KithError`` as for a text.
  @discardableResult
  public func undo(_ key: Key, to number: UInt64? = nil) async throws(KithError) -> PastValue? {
    try await undo(key.text, to: number)
  }
}

extension StoreSnapshot {
  /// Returns the value that a key showed, or nil.
  ///
  /// - Complexity: O(1).
  public func value(forKey key: KeyValueStore.Key) -> PropertyListValue? { dictionary[key] }
}

extension KeyValueStore.Transaction {
  /// Returns the value that the key shows within the transaction.
  ///
  /// - Complexity: O(1).
  public func value(forKey key: KeyValueStore.Key) -> PropertyListValue? {
    value(forKey: key.text)
  }

  /// Sets a key's value.
  ///
  /// - Complexity: O(1).
  public mutating func set(_ value: PropertyListValue, forKey key: KeyValueStore.Key) {
    set(value, forKey: key.text)
  }

  /// Removes a key.
  ///
  /// - Complexity: O(1).
  public mutating func removeValue(forKey key: KeyValueStore.Key) {
    removeValue(forKey: key.text)
  }
}
