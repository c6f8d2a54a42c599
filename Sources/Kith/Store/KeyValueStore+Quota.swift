public import KithCore

extension KeyValueStore {
  /// The bytes and keys that the store uses, with its limits.
  ///
  /// ```swift
  /// let left = store.usage.policy.totalBytes - store.usage.bytes
  /// ```
  ///
  /// - Complexity: O(1).
  public var usage: Usage { service.usage(of: identifier) }

  /// The hidden writes with their devices, in order of keys.
  ///
  /// ```swift
  /// for entry in store.hiddenEntries { print(entry.key, entry.bytes, entry.device) }
  /// ```
  ///
  /// - Complexity: O(*n*) in the hidden bytes.
  public var hiddenEntries: [HiddenEntry] { service.hiddenEntries(of: identifier) }

  /// The transactions that were refused when they were to be published, oldest first.
  ///
  /// They are kept, also after a crash, until ``takeRefusals(through:)``.
  ///
  /// ```swift
  /// for refusal in store.refusals { print(refusal.writes.map(\.key)) }
  /// store.takeRefusals()
  /// ```
  public var refusals: [Refusal] { service.refusals(of: identifier) }

  /// Removes and returns refusals that the program has handled.
  ///
  /// - Parameter number: The number of the last refusal to remove; nil removes all.
  /// - Returns: The refusals that were removed.
  @discardableResult
  public func takeRefusals(through number: UInt64? = nil) -> [Refusal] {
    let service = service
    let taken = service.refusals(of: identifier).filter { $0.number <= number ?? .max }
    guard let last = taken.last else { return [] }
    // A refusal that was not removed would be returned again.
    return service.takeRefusals(of: identifier, through: last.number) ? taken : []
  }
}
