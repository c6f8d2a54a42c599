import Kith
import KithCommands
import KithCore

/// Values, changes and writes as the page gets them. Values are texts of canonical JSON, because
/// numbers of JavaScript would lose 64-bit integers and `1.0`.
enum PageDocuments {
  /// A larger value is sent only on demand.
  static let shownBytes = 4_096

  /// `isWhole`: send the value whatever its size.
  static func entry(_ key: String, _ value: PropertyListValue, isWhole: Bool = false) -> Document {
    .object(["key": .string(key)].merging(members(value, isWhole: isWhole)) { key, _ in key })
  }

  private static func removed(_ key: String) -> Document {
    .object(["key": .string(key), "removed": .bool(true)])
  }

  private static func members(
    _ value: PropertyListValue, isWhole: Bool = false
  ) -> [String: Document?] {
    // A value of a store was encoded before.
    let bytes = (try? EncodedValue(value).size) ?? 0
    let isTold = isWhole || bytes <= shownBytes
    return [
      "bytes": .int(bytes), "json": isTold ? .string(ValueJSON.text(value)) : nil,
      "type": .string(value.typeName),
    ]
  }

  static func values(_ values: [KeyValueStore.Key: PropertyListValue], of store: String) -> Document
  {
    .object([
      "entries": .list(values.entries.map { entry($0.key, $0.value) }), "store": .string(store),
    ])
  }

  static func change(_ change: KeyValueStore.Change, of store: String) -> Document {
    .object([
      "items": .list(change.items.map { item in write(item.key.text, item.new) }),
      "joined": change.isJoined ? .bool(true) : nil, "reason": .string(change.reason.rawValue),
      "store": .string(store),
    ])
  }

  private static func write(
    _ key: String, _ value: PropertyListValue?, isWhole: Bool = false
  ) -> Document {
    value.map { entry(key, $0, isWhole: isWhole) } ?? removed(key)
  }

  static func unshown(
    _ hidden: [KeyValueStore.HiddenEntry], _ refusals: [KeyValueStore.Refusal], of store: String,
    isWhole: Bool
  ) -> Document {
    .object([
      "hidden": .list(
        hidden.map { hidden in
          .object(
            members(hidden.value, isWhole: isWhole).merging([
              "device": .string(hidden.device.hex), "key": .string(hidden.key.text),
              "writtenMilliseconds": .int(hidden.writtenMilliseconds),
            ]) { member, _ in member })
        }),
      "refusals": .list(
        refusals.map { refusal in
          .object([
            "number": .int(refusal.number), "reason": .string("\(refusal.reason)"),
            "writes": .list(refusal.writes.map { write($0.key.text, $0.value, isWhole: isWhole) }),
            "writtenMilliseconds": .int(refusal.writtenMilliseconds),
          ])
        }),
      "store": .string(store),
    ])
  }

  static func past(_ past: KeyValueStore.PastValue, isWhole: Bool) -> Document {
    let value: [String: Document?] =
      past.value.map { members($0, isWhole: isWhole) } ?? ["missing": .bool(true)]
    return .object(
      value.merging([
        "endedBy": past.endedBy.map { .string($0.hex) },
        "endedMilliseconds": .int(past.endedMilliseconds), "key": .string(past.key.text),
        "number": .int(past.number),
      ]) { member, _ in member })
  }

  static func device(_ device: PairingDevice) -> Document {
    .object([
      "address": .string(device.address), "fingerprint": .string(device.fingerprint),
      "id": .string(device.id.hex), "name": .string(device.name),
    ])
  }
}
