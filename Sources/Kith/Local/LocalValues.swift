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
    for item in change.items { values.append(try .encoding(item.new, forKey: item.key)) }
    superseded = change.superseded
    isJoined = change.isJoined
  }

  /// The change for a consumer that was shown these values; updates them.
  func change(of shown: inout [Key: PropertyListValue]) -> KeyValueStore.Change {
    var items: [KeyValueStore.Change.Item] = []
    for entry in values {
      let key = Key(entry.key)
      let new = entry.value.flatMap { try? $0.decoded() }
      items.append(KeyValueStore.Change.Item(key: entry.key, old: shown[key], new: new))
      shown[key] = new
    }
    return KeyValueStore.Change(
      reason: reason, items: items, superseded: superseded, isJoined: isJoined)
  }

  func viewChange(of store: StoreIdentifier) -> ViewChange {
    ViewChange(
      store: store, reason: reason == .ownWrite ? nil : reason,
      changes: values.map { (Key($0.key), $0.value) },
      superseded: superseded.map { Key($0) })
  }
}

package struct LocalHidden: Codable, Sendable {
  var entry: KithCore.Operation
  var bytes: Int
  var device: DeviceID
  var milliseconds: UInt64

  init(_ hidden: HiddenEntry) throws(KithError) {
    entry = try .encoding(hidden.value, forKey: hidden.key)
    (bytes, device, milliseconds) = (hidden.bytes, hidden.device, hidden.writtenMilliseconds)
  }

  var hidden: HiddenEntry? {
    guard let value = try? entry.value?.decoded() else { return nil }
    return HiddenEntry(
      key: entry.key, value: value, bytes: bytes, device: device,
      writtenMilliseconds: milliseconds)
  }
}

package struct LocalRefusal: Codable, Sendable {
  var number: UInt64
  var reason: UInt8
  var clock: HybridTime
  var operations: [KithCore.Operation]

  init(_ refusal: Refusal) {
    (number, reason) = (refusal.number, refusal.reason.rawValue)
    (clock, operations) = (refusal.clock, refusal.operations)
  }

  var refusal: Refusal? {
    Refusal.Reason(rawValue: reason).map {
      Refusal(number: number, reason: $0, clock: clock, operations: operations)
    }
  }
}

/// A ``KithError`` without its cause.
struct LocalFailure: Codable, Sendable {
  var code: String
  var message: String
  var key: String?
  var device: DeviceID?
  var path: String?
  var actual: Int?
  var limit: Int?
  var triesLeft: Int?
  var quota: QuotaNumbers?

  init(_ error: KithError) {
    (code, message, key) = (error.code.description, error.message, error.key)
    (device, path, actual, limit) = (error.device, error.path, error.actual, error.limit)
    (triesLeft, quota) = (error.triesLeft, error.quota)
  }

  var error: KithError {
    var error = KithError(
      KithError.Code(description: code), message, key: key, device: device, path: path,
      actual: actual, limit: limit, quota: quota)
    error.triesLeft = triesLeft
    return error
  }
}

extension KithError {
  static let malformedControl = KithError(
    .control, "The other side of the control socket sent something else than agreed.")
}
