public import KithCore

extension KeyValueStore {
  /// Returns the values that a key, or any, showed before on this device, newest first.
  ///
  /// A value ends when it is replaced or removed: by this program, another one, another device or
  /// the quota. Each device has its own history; another device may have shown other values.
  ///
  /// ```swift
  /// for past in try store.history(of: "theme", limit: 5) {
  ///   print(past.value ?? "was missing", past.ended)
  /// }
  /// ```
  /// The device keeps values for 30 days, at most 100 of a key and as many bytes as the policy lets
  /// the store show; ``Accounts/Configuration/keepsHistory`` switches it off. It begins when a
  /// program of this host first opens the store.
  ///
  /// - Parameters:
  ///   - key: The key; nil: all keys.
  ///   - limit: The most values to return.
  /// - Returns: The values.
  /// - Throws: ``KithError`` as ``usage`` does.
  /// - Complexity: O(*n*) in the values that are kept.
  public func history(
    of key: String? = nil, limit: Int = .max
  ) throws(KithError) -> [PastValue] {
    try withService { service throws(KithError) in
      try service.history(of: identifier, key: key, limit: limit)
    }
  }

  /// Makes a key show a value of its history again, and returns once that survives a crash.
  ///
  /// It is a write as any other: the other devices get it. The value that it replaces becomes a past
  /// value, so that a second call takes back the first.
  ///
  /// ```swift
  /// if try await store.undo("theme") == nil { print("nothing to undo") }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - number: The number of the past value; nil: the newest at the moment of the write.
  /// - Returns: The past value; if it has no value, the key was removed. Nil if there is no such past
  ///   value; then nothing has changed.
  /// - Throws: ``KithError`` as ``set(_:forKey:)-(_,String)`` does.
  @discardableResult
  public func undo(_ key: String, to number: UInt64? = nil) async throws(KithError) -> PastValue? {
    try await awaitingService { service async throws(KithError) in
      try await service.undo(.key(key, to: number), in: identifier).first
    }
  }

  /// Makes all keys whose values ended together show those values again, in one transaction, and
  /// returns once that survives a crash.
  ///
  /// So a commit of several keys is taken back whole. Values of it that the history no longer keeps
  /// stay as they are.
  ///
  /// ```swift
  /// if let last = try store.history(limit: 1).first {
  ///   try await store.undo(transaction: last.transaction)
  /// }
  /// ```
  ///
  /// - Parameter number: The ``PastValue/transaction`` of the past values.
  /// - Returns: The past values; a key whose value has none was removed. Empty if the history keeps
  ///   none of them; then nothing has changed.
  /// - Throws: ``KithError`` as ``undo(_:to:)-(String,_)`` does.
  /// - Complexity: O(*n*) in the values that are kept.
  @discardableResult
  public func undo(transaction number: UInt64) async throws(KithError) -> [PastValue] {
    try await awaitingService { service async throws(KithError) in
      try await service.undo(.transaction(number), in: identifier)
    }
  }
}
