public import FoundationEssentials
internal import SwiftProtobuf

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

  /// The transaction's writes, in the order of keys.
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

extension Refusal {
  init?(number: UInt64, decoding bytes: [UInt8]) {
    guard let wire = try? WireStoredRefusal(serializedBytes: bytes),
      let reason = UInt8(exactly: wire.reason).flatMap(Reason.init)
    else { return nil }
    let operations = wire.operations.compactMap { Operation($0) }
    guard operations.count == wire.operations.count else { return nil }
    self.init(
      number: number, reason: reason, clock: HybridTime(rawValue: wire.clock),
      operations: operations)
  }

  func encoded() -> [UInt8] {
    var wire = WireStoredRefusal()
    wire.reason = UInt32(reason.rawValue)
    wire.clock = clock.rawValue
    wire.operations = operations.map(WireStoredOperation.init)
    return wire.encodedBytes()
  }

  var keptBytes: Int {
    operations.reduce(Limits.overheadBytes) {
      $0 + $1.key.utf8.count + ($1.value?.size ?? 0) + Limits.overheadBytes
    }
  }
}

/// A store's newest refusals that its program has not taken. Numbers rise, also over restarts: storage
/// keeps the last one taken, without its operations.
struct RefusalList {
  /// Oldest first. A slice, from whose beginning many are removed in little time.
  private(set) var refusals: ArraySlice<Refusal> = []
  private(set) var bytes = 0
  private var lastTaken: UInt64?
  /// The number of the newest refusal, also if it is not kept any more; 0: there was none.
  private(set) var lastNumber: UInt64 = 0

  /// Adds a refusal. Above `limit` bytes, drops the oldest, but never the new one.
  mutating func add(
    _ write: LocalWrite, because reason: Refusal.Reason, limit: Int, in store: StoreIdentifier
  ) -> [Mutation] {
    let refusal = Refusal(
      number: lastNumber + 1, reason: reason, clock: write.clock, operations: write.operations)
    restore(refusal)
    var mutations: [Mutation] = [.put(.store(store, .refusal(refusal.number)), refusal.encoded())]
    while bytes > limit, refusals.count > 1 {
      mutations.append(.remove(.store(store, .refusal(removeOldest().number))))
    }
    return mutations
  }

  /// Returns it without its operations, which the slice would keep otherwise.
  private mutating func removeOldest() -> Refusal {
    bytes -= refusals[refusals.startIndex].keptBytes
    refusals[refusals.startIndex].operations = []
    return refusals.removeFirst()
  }

  mutating func take(through number: UInt64, in store: StoreIdentifier) -> [Mutation] {
    var mutations: [Mutation] = []
    while let oldest = refusals.first, oldest.number <= number {
      let last = removeOldest()
      if let lastTaken { mutations.append(.remove(.store(store, .refusal(lastTaken)))) }
      mutations.append(.put(.store(store, .refusal(last.number)), last.encoded()))
      lastTaken = last.number
    }
    return mutations
  }

  /// A refusal in storage that cannot be read keeps its number.
  mutating func skip(_ number: UInt64) { lastNumber = max(lastNumber, number) }

  /// Adds a refusal from storage; called in order of numbers.
  mutating func restore(_ refusal: Refusal) {
    lastNumber = max(lastNumber, refusal.number)
    guard !refusal.operations.isEmpty else { return lastTaken = refusal.number }
    refusals.append(refusal)
    bytes += refusal.keptBytes
  }
}
