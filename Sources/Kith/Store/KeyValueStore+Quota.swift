public import KithCore

/// A newest write that the quota hides. It is kept, and shown again when it fits.
public struct HiddenValue: Sendable, Hashable {
  /// The key.
  public var key: String
  /// The value that is hidden.
  public var value: PropertyListValue
  /// The value's size as the quota counts it, in bytes.
  public var bytes: Int
  /// The device that wrote it.
  public var device: DeviceID
  /// The time of the write.
  public var clock: HybridTime
}

/// A transaction that was accepted offline, but did not fit when it was to be published.
public struct RefusedTransaction: Sendable, Hashable {
  /// The cause of a refusal.
  public enum Reason: String, Sendable, Hashable {
    /// Its values would not all be shown.
    case quota
    /// It was written while nobody was signed in, and the account has one of its keys.
    case initialSync
  }

  /// A write of one key.
  public struct Write: Sendable, Hashable {
    /// The key.
    public var key: String
    /// The value; nil if the write removed the key.
    public var value: PropertyListValue?
  }

  /// The number of the refusal in its store: 1, 2, 3 …
  public var number: UInt64
  /// The cause of the refusal.
  public var reason: Reason
  /// The time of the write.
  public var clock: HybridTime
  /// All writes of the transaction, in order.
  public var writes: [Write]
}

extension RefusedTransaction {
  init(_ refusal: Refusal) {
    number = refusal.number
    reason = refusal.reason == .quota ? .quota : .initialSync
    clock = refusal.clock
    writes = refusal.operations.map {
      Write(key: $0.key, value: $0.value.flatMap { try? $0.decoded() })
    }
  }
}

extension KeyValueStore {
  /// The bytes and keys that the store uses, with its limits.
  ///
  /// - Complexity: O(1).
  public var usage: Usage { backing.usage(of: identifier) }

  /// The hidden writes with their devices, in order of keys.
  ///
  /// - Complexity: O(*n*) in the hidden bytes.
  public var hiddenEntries: [HiddenValue] { backing.hiddenEntries(of: identifier) }

  /// The transactions that were refused when they were to be published, oldest first.
  ///
  /// They are kept, also after a crash, until ``takeRefusals(through:)``.
  ///
  /// ```swift
  /// for refusal in store.refusals { print(refusal.writes.map(\.key)) }
  /// store.takeRefusals()
  /// ```
  public var refusals: [RefusedTransaction] { backing.refusals(of: identifier) }

  /// Removes and returns refusals that the program has handled.
  ///
  /// - Parameter number: The number of the last refusal to remove; nil removes all.
  /// - Returns: The refusals that were removed.
  @discardableResult
  public func takeRefusals(through number: UInt64? = nil) -> [RefusedTransaction] {
    let backing = backing
    let taken = backing.refusals(of: identifier).filter { $0.number <= number ?? .max }
    guard let last = taken.last else { return [] }
    // A refusal that was not removed would be returned again.
    return backing.takeRefusals(of: identifier, through: last.number) ? taken : []
  }
}
