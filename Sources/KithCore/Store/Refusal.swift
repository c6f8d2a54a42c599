public import FoundationEssentials

/// A transaction that was accepted offline, but did not fit later (`Docs/Protocol/drafts.md`,
/// "Re-checking").
public struct Refusal: Codable, Hashable, Sendable {
  /// The cause of a refusal.
  public enum Reason: UInt8, Codable, Hashable, Sendable {
    /// Its values would not all be shown.
    case quota = 1
    /// The account has one of its keys, and it was written while nobody was signed in.
    case initialSync = 2
  }

  /// A write of one key.
  public struct Write: Hashable, Sendable {
    /// The key.
    public var key: Key
    /// The value; nil if the write removed the key.
    public var value: PropertyListValue?
  }

  /// The refusal's number in its store: 1, 2, 3 …; no later one gets it.
  public var number: UInt64
  /// The cause of the refusal.
  public var reason: Reason
  package var clock: HybridTime
  package var operations: [Operation]

  /// The transaction's writes, in order.
  ///
  /// - Complexity: O(*n*) in the bytes of the values.
  public var writes: [Write] {
    operations.map { Write(key: Key($0.key), value: $0.value.flatMap { try? $0.decoded() }) }
  }

  package var writtenMilliseconds: UInt64 { clock.milliseconds }

  /// The time of the transaction.
  public var written: Date { Date(milliseconds: writtenMilliseconds) }

  package init(number: UInt64, reason: Reason, clock: HybridTime, operations: [Operation]) {
    self.number = number
    self.reason = reason
    self.clock = clock
    self.operations = operations
  }
}
