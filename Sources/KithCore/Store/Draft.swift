internal import SwiftProtobuf

/// A local transaction that is not yet published.
struct Draft: Hashable {
  /// Numbers the store's drafts: 1, 2, 3 … A draft that replaces an older one takes its ordinal.
  var ordinal: UInt64
  /// The clock of the stamp of all its entries.
  var clock: HybridTime
  /// At most one operation for each key.
  var operations: [Operation]

  init(ordinal: UInt64, clock: HybridTime, operations: [Operation]) {
    self.ordinal = ordinal
    self.clock = clock
    self.operations = operations
  }

  init?(ordinal: UInt64, decoding bytes: [UInt8]) {
    guard let wire = try? WireStoredDraft(serializedBytes: bytes),
      let operations = [Operation](wire.operations)
    else { return nil }
    self.init(
      ordinal: ordinal, clock: HybridTime(rawValue: wire.clock), operations: operations)
  }

  func encoded() -> [UInt8] {
    var wire = WireStoredDraft()
    wire.clock = clock.rawValue
    wire.operations = operations.map(WireStoredOperation.init)
    return wire.encodedBytes()
  }

  /// Whether this draft can replace an older one: both write only the same key, and this value is
  /// no larger.
  ///
  /// So offline writes of one key do not fill the disk. A draft of several keys replaces none: if
  /// it is refused for another key, the older write would be lost too.
  func covers(_ older: Draft) -> Bool {
    guard operations.count == 1, older.operations.count == 1,
      Key(operations[0].key) == Key(older.operations[0].key)
    else { return false }
    guard let size = operations[0].value?.size else { return true }
    return size <= older.operations[0].value?.size ?? -1
  }
}

extension StoredStore {
  /// Readable transactions that wait to be published, by clock; ordinals may have another order.
  package var draftedWrites: [(ordinal: UInt64, write: LocalWrite)] {
    drafts.compactMap { ordinal, bytes in
      Draft(ordinal: ordinal, decoding: bytes).map {
        (ordinal, LocalWrite(clock: $0.clock, operations: $0.operations))
      }
    }.sorted { $0.write.clock < $1.write.clock }
  }
}

extension Refusal {
  init?(number: UInt64, decoding bytes: [UInt8]) {
    guard let wire = try? WireStoredRefusal(serializedBytes: bytes),
      let reason = UInt8(exactly: wire.reason).flatMap(Reason.init),
      let operations = [Operation](wire.operations)
    else { return nil }
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
}

extension [Operation] {
  /// Only the last operation of each key.
  package var joined: [Operation] {
    var seen = Set<Key>()
    return reversed().filter { seen.insert(Key($0.key)).inserted }.reversed()
  }

  var keptBytes: Int {
    reduce(Limits.overheadBytes) {
      $0 + $1.key.utf8.count + ($1.value?.size ?? 0) + Limits.overheadBytes
    }
  }

  fileprivate init?(_ wire: [WireStoredOperation]) {
    self = []
    for operation in wire {
      guard operation.hasValue else {
        append(Operation(key: operation.key, value: nil))
        continue
      }
      guard let value = try? EncodedValue(checking: [UInt8](operation.value)) else { return nil }
      append(Operation(key: operation.key, value: value))
    }
  }
}

extension WireStoredOperation {
  fileprivate init(_ operation: Operation) {
    self.init()
    key = operation.key
    if let value = operation.value { self.value = .init(value.bytes) }
  }
}
