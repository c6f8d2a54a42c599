package import KithCore

extension ChangeReason: Codable {}

extension Sequence<KithCore.Operation> {
  var values: [Key: PropertyListValue] {
    var values: [Key: PropertyListValue] = [:]
    // The values were checked when they came in.
    for entry in self { values[Key(entry.key)] = entry.value.flatMap { try? $0.decoded() } }
    return values
  }
}

extension [KithCore.Operation] {
  /// Nil removes a key.
  package static func encoding(
    _ writes: [(key: String, value: PropertyListValue?)]
  ) throws(KithError) -> Self {
    try writes.map { write throws(KithError) in try .encoding(write.value, forKey: write.key) }
  }
}

extension [Key: PropertyListValue] {
  var operations: [KithCore.Operation] {
    get throws(KithError) {
      var operations: [KithCore.Operation] = []
      operations.reserveCapacity(count)
      for (key, value) in sorted(by: { $0.key < $1.key }) {
        operations.append(try .encoding(value, forKey: key.text))
      }
      return operations
    }
  }
}

/// A ``KeyValueStore.Change`` without the old values.
package struct LocalChange: Codable, Sendable {
  var reason: ChangeReason
  var values: [KithCore.Operation]
  var superseded: [String]
  var isJoined: Bool

  init(_ change: KeyValueStore.Change) throws(KithError) {
    reason = change.reason
    values = []
    for item in change.items { values.append(try .encoding(item.new, forKey: item.key.text)) }
    superseded = change.superseded.map(\.text)
    isJoined = change.isJoined
  }

  /// The change for a consumer that was shown these values; updates them.
  func change(of shown: inout [Key: PropertyListValue]) -> KeyValueStore.Change {
    var items: [KeyValueStore.Change.Item] = []
    for entry in values {
      let key = Key(entry.key)
      let new = entry.value.flatMap { try? $0.decoded() }
      items.append(KeyValueStore.Change.Item(key: key, old: shown[key], new: new))
      shown[key] = new
    }
    return KeyValueStore.Change(
      reason: reason, items: items, superseded: superseded.map { Key($0) }, isJoined: isJoined)
  }

  func viewChange(of store: StoreIdentifier) -> ViewChange {
    ViewChange(
      store: store, reason: reason == .ownWrite ? nil : reason,
      changes: values.map { (Key($0.key), $0.value) },
      superseded: superseded.map { Key($0) })
  }
}

extension NodeAnswer {
  /// The outcomes of ``StoreService/write(_:each:)``: a message has no nil.
  static func written(_ outcomes: [KithError?]) -> NodeAnswer {
    var refused: [Int: KithError] = [:]
    for (index, error) in outcomes.enumerated() { refused[index] = error }
    return .written(count: outcomes.count, refused: refused)
  }
}

extension ArraySlice<[KithCore.Operation]> {
  /// The first transactions that go in one message: at least one.
  var message: Self {
    var bytes = 0
    return prefix(LocalLimits.transactions).prefix { operations in
      let isFirst = bytes == 0
      bytes += operations.reduce(1) { $0 + 64 + $1.key.utf8.count + ($1.value?.size ?? 0) }
      return isFirst || bytes <= LocalLimits.transactionBytes
    }
  }
}

extension KithError {
  static let malformedControl = KithError(
    .control, "The other side of the control socket sent something else than agreed.")
}
