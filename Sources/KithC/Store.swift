// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

internal import CKith
internal import Kith
internal import KithCore

/// A `kith_store`.
final class Store: Handled {
  /// For reading, also after the accounts are closed.
  let store: KeyValueStore
  let account: Account

  init(_ store: KeyValueStore, of account: Account) {
    self.store = store
    self.account = account
  }

  /// For all but reading: throws once the accounts are closed.
  func opened() throws(KithError) -> KeyValueStore {
    _ = try account.opened()
    return store
  }
}

private func store(_ store: Pointer) throws(KithError) -> KeyValueStore {
  try Argument.object(store, "store", Store.self).store
}

private func opened(_ store: Pointer) throws(KithError) -> KeyValueStore {
  try Argument.object(store, "store", Store.self).opened()
}

/// Writes a key.
private func write(
  _ pointer: Pointer, _ key: Text, _ length: Int, _ error: ErrorOut,
  _ value: () throws -> PropertyListValue?
) -> Bool {
  succeeds(error) { try opened(pointer).set(try value(), forKey: Argument.key(key, length)) }
}

private func shown(_ pointer: Pointer, _ key: Text) -> PropertyListValue? {
  guard let key = try? Argument.key(key, Argument.terminated) else { return nil }
  return try? store(pointer).value(forKey: key)
}

// MARK: - Reading

@c @implementation
public func kith_store_get(
  _ pointer: Pointer, _ key: Text, _ length: Int, _ error: ErrorOut
) -> Pointer {
  newValue(error) { try store(pointer).value(forKey: Argument.key(key, length)) }
}

@c @implementation
public func kith_store_get_bool(_ store: Pointer, _ key: Text, _ otherwise: Bool) -> Bool {
  shown(store, key)?.asBool ?? otherwise
}

@c @implementation
public func kith_store_get_integer(_ store: Pointer, _ key: Text, _ otherwise: Int64) -> Int64 {
  shown(store, key)?.asInteger ?? otherwise
}

@c @implementation
public func kith_store_get_double(_ store: Pointer, _ key: Text, _ otherwise: Double) -> Double {
  shown(store, key)?.asDouble ?? otherwise
}

@c @implementation
public func kith_store_keys(_ pointer: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) { .texts(try store(pointer).keys.map(\.text)) }
}

@c @implementation
public func kith_store_snapshot(
  _ pointer: Pointer, _ prefix: Text, _ length: Int, _ error: ErrorOut
) -> Pointer {
  new(error) {
    let prefix = try Argument.prefix(prefix, length)
    return HeldValue(try store(pointer).snapshot.values(prefix: prefix))
  }
}

// MARK: - Writing

@c @implementation
public func kith_store_set(
  _ store: Pointer, _ key: Text, _ length: Int, _ value: Pointer, _ error: ErrorOut
) -> Bool {
  write(store, key, length, error) { try Argument.value(value) }
}

@c @implementation
public func kith_store_set_bool(
  _ store: Pointer, _ key: Text, _ value: Bool, _ error: ErrorOut
) -> Bool {
  write(store, key, Argument.terminated, error) { .bool(value) }
}

@c @implementation
public func kith_store_set_integer(
  _ store: Pointer, _ key: Text, _ value: Int64, _ error: ErrorOut
) -> Bool {
  write(store, key, Argument.terminated, error) { .integer(value) }
}

@c @implementation
public func kith_store_set_double(
  _ store: Pointer, _ key: Text, _ value: Double, _ error: ErrorOut
) -> Bool {
  write(store, key, Argument.terminated, error) { .double(value) }
}

@c @implementation
public func kith_store_set_string(
  _ store: Pointer, _ key: Text, _ text: Text, _ error: ErrorOut
) -> Bool {
  write(store, key, Argument.terminated, error) { .string(try Argument.text(text, "text")) }
}

@c @implementation
public func kith_store_set_each(
  _ pointer: Pointer, _ count: Int, _ keys: Texts, _ lengths: UnsafePointer<Int>?,
  _ values: UnsafePointer<Pointer>?, _ error: ErrorOut
) -> Bool {
  succeeds(error) {
    let store = try opened(pointer)
    guard count >= 0 else { throw KithError.invalid("The argument count is too large.") }
    var transactions: [[KithCore.Operation]] = []
    if count > 0 {
      guard let keys, let values else { throw KithError.invalid("The keys or values are NULL.") }
      for index in 0..<count {
        let key = try Argument.key(keys[index], lengths?[index] ?? Argument.terminated)
        transactions.append(try .encoding([(key, try Argument.value(values[index]))]))
      }
    }
    let refusals = store.write(each: transactions)
    if let refusal = refusals.compactMap(\.self).first { throw refusal }
  }
}

@c @implementation
public func kith_store_remove(
  _ pointer: Pointer, _ key: Text, _ length: Int, _ error: ErrorOut
) -> Bool {
  write(pointer, key, length, error) { nil }
}

@c @implementation
public func kith_store_flush(_ pointer: Pointer, _ error: ErrorOut) -> Bool {
  succeeds(error) { try opened(pointer).flush() }
}

// MARK: - Asking the node

@c @implementation
public func kith_store_usage(_ pointer: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) { try PropertyListValue(encoding: opened(pointer).usage) }
}

@c @implementation
public func kith_store_hidden_entries(_ pointer: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) {
    .array(
      try opened(pointer).hiddenEntries.map { entry in
        .members([
          "bytes": .number(entry.bytes), "device": .string(entry.device.hex),
          "key": .string(entry.key.text), "value": entry.value, "written": .date(entry.written),
        ])
      })
  }
}

extension [Refusal] {
  fileprivate var document: PropertyListValue {
    .array(
      map { refusal in
        .members([
          "number": .number(refusal.number), "reason": .string("\(refusal.reason)"),
          "writes": .array(
            refusal.writes.map { .members(["key": .string($0.key.text), "value": $0.value]) }),
          "written": .date(refusal.written),
        ])
      })
  }
}

@c @implementation
public func kith_store_refusals(_ pointer: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) { try opened(pointer).refusals.document }
}

@c @implementation
public func kith_store_take_refusals(
  _ pointer: Pointer, _ number: UInt64, _ error: ErrorOut
) -> Pointer {
  newValue(error) {
    try opened(pointer).takeRefusals(through: number == 0 ? nil : number).document
  }
}

extension PastValue {
  fileprivate var document: PropertyListValue {
    .members([
      "ended": .date(ended), "endedBy": endedBy.map { .string($0.hex) }, "key": .string(key.text),
      "number": .number(number), "transaction": .number(transaction), "value": value,
    ])
  }
}

@c @implementation
public func kith_store_history(
  _ pointer: Pointer, _ key: Text, _ length: Int, _ limit: Int, _ error: ErrorOut
) -> Pointer {
  newValue(error) {
    let store = try opened(pointer)
    let key = try key == nil ? nil : Argument.key(key, length)
    let values = try store.history(of: key, limit: limit > 0 ? limit : .max)
    return .array(values.map(\.document))
  }
}

@c @implementation
public func kith_store_undo(
  _ pointer: Pointer, _ key: Text, _ length: Int, _ number: UInt64, _ error: ErrorOut
) -> Pointer {
  newValue(error) {
    let (store, key) = (try opened(pointer), try Argument.key(key, length))
    return try CallingThread.run { () async throws(KithError) in
      try await store.undo(key, to: number == 0 ? nil : number)
    }?.document
  }
}

@c @implementation
public func kith_store_undo_transaction(
  _ pointer: Pointer, _ number: UInt64, _ error: ErrorOut
) -> Pointer {
  newValue(error) {
    let store = try opened(pointer)
    let past = try CallingThread.run { () async throws(KithError) in
      try await store.undo(transaction: number)
    }
    return .array(past.map(\.document))
  }
}

extension SyncReport {
  fileprivate var document: PropertyListValue {
    .members([
      "complete": .texts(complete.map(\.hex)), "hasUnpublishedWrites": .bool(hasUnpublishedWrites),
      "incomplete": .texts(incomplete.map(\.hex)), "isComplete": .bool(isComplete),
    ])
  }
}

@c @implementation
public func kith_store_sync_report(_ pointer: Pointer, _ error: ErrorOut) -> Pointer {
  newValue(error) { try opened(pointer).syncReport.document }
}

@c @implementation
public func kith_store_wait_until_synced(
  _ pointer: Pointer, _ milliseconds: CInt, _ devices: CUnsignedInt, _ error: ErrorOut
) -> Pointer {
  new(error) {
    let held = try Argument.object(pointer, "store", Store.self)
    let store = held.store
    let timeout: Duration = milliseconds < 0 ? .seconds(1 << 28) : .milliseconds(Int(milliseconds))
    return try held.account.begin { _, _ in
      try await store.waitUntilSynced(
        timeout: timeout, devices: devices == 0 ? nil : Int(devices)
      ).document
    }
  }
}
