public import KithCore

/// A newest write that the quota does not show. It stays, and is shown again when it fits.
public struct HiddenValue: Sendable, Hashable {
  /// The key.
  public var key: String
  /// The value that is not shown.
  public var value: PropertyListValue
  /// Its size as the quota counts it, in bytes.
  public var bytes: Int
  /// The device that wrote it.
  public var device: DeviceID
  /// When it was written.
  public var clock: HybridTime
}

/// A transaction that was accepted here and refused when it was to be published.
public struct RefusedTransaction: Sendable, Hashable {
  /// Why it was refused.
  public enum Reason: String, Sendable, Hashable {
    /// Its values would not all be shown.
    case quota
    /// It was written before the device's first pull, and one of its keys lost in it.
    case initialSync
  }

  /// What it wrote to one key.
  public struct Write: Sendable, Hashable {
    /// The key.
    public var key: String
    /// The value; nil: it removed the key.
    public var value: PropertyListValue?
  }

  /// Counts the refusals of the store: 1, 2, 3 …
  public var number: UInt64
  /// Why it was refused.
  public var reason: Reason
  /// When it was written.
  public var clock: HybridTime
  /// All that it wrote, in its order.
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
  /// What the store uses of its limits.
  ///
  /// - Complexity: O(1).
  public var usage: Usage { backing.usage(of: identifier) }

  /// What the quota hides, and whose it is, in order of keys.
  ///
  /// - Complexity: O(*n*) in the hidden bytes.
  public var hiddenEntries: [HiddenValue] { backing.hiddenEntries(of: identifier) }

  /// Transactions that were refused when they were to be published, oldest first. They are kept,
  /// also over a crash, until ``takeRefusals(through:)``.
  public var refusals: [RefusedTransaction] { backing.refusals(of: identifier) }

  /// Forgets refusals that the program has dealt with.
  ///
  /// - Parameter number: The last one's number; nil: all.
  /// - Returns: The refusals forgotten.
  @discardableResult
  public func takeRefusals(through number: UInt64? = nil) -> [RefusedTransaction] {
    let backing = backing
    let taken = backing.refusals(of: identifier).filter { $0.number <= number ?? .max }
    guard let last = taken.last else { return [] }
    // What is not forgotten would be told again.
    return backing.takeRefusals(of: identifier, through: last.number) ? taken : []
  }
}
