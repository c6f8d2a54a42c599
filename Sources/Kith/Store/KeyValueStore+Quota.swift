public import KithCore

extension KeyValueStore {
  /// The bytes and keys that the store uses, with its limits.
  ///
  /// ```swift
  /// let usage = try store.usage
  /// let left = usage.policy.totalBytes - usage.bytes
  /// ```
  ///
  /// - Throws: ``KithError`` with `timedOut` if another program's node does not answer for 5
  ///   seconds, or with `closed` if it ended and no program opens the directory for 10 seconds.
  /// - Complexity: O(1).
  public var usage: Usage {
    get throws(KithError) {
      try withService { service throws(KithError) in try service.usage(of: identifier) }
    }
  }

  /// The hidden writes with their devices, in order of keys.
  ///
  /// ```swift
  /// for entry in try store.hiddenEntries { print(entry.key, entry.bytes, entry.device) }
  /// ```
  ///
  /// - Throws: ``KithError`` as ``usage`` does.
  /// - Complexity: O(*n*) in the hidden bytes.
  public var hiddenEntries: [HiddenEntry] {
    get throws(KithError) {
      try withService { service throws(KithError) in try service.hiddenEntries(of: identifier) }
    }
  }

  /// The transactions that were accepted but not published, oldest first.
  ///
  /// They are kept, also after a crash, until ``takeRefusals(through:)``. If a program never takes
  /// them, the device keeps the newest.
  ///
  /// ```swift
  /// let refusals = try store.refusals
  /// for refusal in refusals { print(refusal.writes.map(\.key)) }
  /// if let last = refusals.last { try store.takeRefusals(through: last.number) }
  /// ```
  ///
  /// - Throws: ``KithError`` as ``usage`` does.
  public var refusals: [Refusal] {
    get throws(KithError) { try readRefusals(takingThrough: nil) }
  }

  /// Removes and returns refusals that the program has handled.
  ///
  /// - Parameter number: The number of the last refusal to remove; nil removes all.
  /// - Returns: The removed refusals.
  /// - Throws: ``KithError`` as ``usage`` does, or a storage code. With `timedOut`, they may be
  ///   removed or not.
  @discardableResult
  public func takeRefusals(through number: UInt64? = nil) throws(KithError) -> [Refusal] {
    let taken = try refusals.filter { $0.number <= number ?? .max }
    // Up to one that was read, so that none is removed that came since.
    if let last = taken.last { _ = try readRefusals(takingThrough: last.number) }
    return taken
  }

  private func readRefusals(takingThrough number: UInt64?) throws(KithError) -> [Refusal] {
    try withService { service throws(KithError) in
      try service.refusals(of: identifier, takingThrough: number)
    }
  }
}
