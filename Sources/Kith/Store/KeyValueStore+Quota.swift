public import KithCore

extension KeyValueStore {
  /// The bytes and keys that the store uses, with its limits.
  ///
  /// ```swift
  /// let left = store.usage.policy.totalBytes - store.usage.bytes
  /// ```
  ///
  /// - Complexity: O(1). An attached program waits up to 5 seconds for the node.
  public var usage: Usage { service.usage(of: identifier) }

  /// The hidden writes with their devices, in order of keys.
  ///
  /// ```swift
  /// for entry in store.hiddenEntries { print(entry.key, entry.bytes, entry.device) }
  /// ```
  ///
  /// - Complexity: O(*n*) in the hidden bytes. An attached program waits as for ``usage``.
  public var hiddenEntries: [HiddenEntry] { service.hiddenEntries(of: identifier) }

  /// The transactions that were accepted but not published, oldest first.
  ///
  /// They are kept, also after a crash, until ``takeRefusals(through:)``. An attached program waits
  /// as for ``usage``.
  ///
  /// ```swift
  /// for refusal in store.refusals { print(refusal.writes.map(\.key)) }
  /// store.takeRefusals()
  /// ```
  public var refusals: [Refusal] { service.refusals(of: identifier) }

  /// Removes and returns refusals that the program has handled.
  ///
  /// - Parameter number: The number of the last refusal to remove; nil removes all.
  /// - Returns: The removed refusals.
  @discardableResult
  public func takeRefusals(through number: UInt64? = nil) -> [Refusal] {
    let service = service
    let taken = service.refusals(of: identifier).filter { $0.number <= number ?? .max }
    guard let last = taken.last else { return [] }
    // If the service kept them, the next call returns them.
    return service.takeRefusals(of: identifier, through: last.number) ? taken : []
  }
}
