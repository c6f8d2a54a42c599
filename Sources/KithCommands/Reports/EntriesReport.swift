import Kith
import KithCore
import KithTerminal

/// The report of `kith ls`.
struct EntriesReport {
  struct Item {
    var key: String
    var value: PropertyListValue
    /// Encoded bytes.
    var bytes: Int
  }

  let store: String
  private(set) var items: [Item]

  /// Makes the report of the keys that begin with the prefix, in their order, or with the largest values
  /// first.
  init(
    store: String, _ entries: [(key: String, value: PropertyListValue)], prefix: String,
    isBySize: Bool = false
  ) throws {
    self.store = store
    items = try entries.filter { $0.key.utf8.starts(with: prefix.utf8) }
      .map { Item(key: $0.key, value: $0.value, bytes: try EncodedValue($0.value).size) }
    if isBySize { items.sort { $0.bytes > $1.bytes } }
  }

  /// The keys, one on each line.
  var keys: String { items.map { Columns.printable($0.key) }.joined(separator: "\n") }

  func table(_ style: Style) -> String {
    var table = Table([("KEY", .whole), ("TYPE", .left), ("SIZE", .right), ("VALUE", .cut)])
    for item in items {
      table.add([
        Table.Cell(Columns.printable(item.key), .strong),
        Table.Cell(item.value.typeName, .faint), Table.Cell(Format.bytes(item.bytes)),
        Table.Cell(ValueText.shown(item.value, limit: style.columns ?? .max)),
      ])
    }
    return table.text(style)
  }

  var document: Document {
    .versioned([
      "entries": .list(
        items.map { item in
          .object([
            "bytes": .int(item.bytes), "key": .string(item.key),
            "type": .string(item.value.typeName), "value": .value(item.value),
          ])
        }),
      "store": .string(store),
    ])
  }
}

/// The report of `kith watch` on one change.
struct ChangeReport: Sendable {
  private let change: KeyValueStore.Change
  private let items: [KeyValueStore.Change.Item]

  /// Nil if the change concerns none of the keys. No keys mean all.
  init?(_ change: KeyValueStore.Change, keys: Set<KeyValueStore.Key> = []) {
    items =
      keys.isEmpty ? change.items : change.items.filter { keys.contains($0.key) }
    if items.isEmpty { return nil }
    self.change = change
  }

  /// A line for each key.
  func text(_ style: Style) -> String {
    items.map { item in
      let key = style(.strong, Columns.printable(item.key.text))
      let reason = change.reason == .ownWrite ? "" : style(.faint, "  (\(words))")
      guard let new = item.new else { return "\(key) \(style(.warning, "removed"))\(reason)" }
      return "\(key) = \(ValueText.shown(new))\(reason)"
    }
    .joined(separator: "\n")
  }

  private var words: String {
    switch change.reason {
    case .ownWrite: "written here"
    case .externalChange: "from another device"
    case .initialSyncChange: "first sync"
    case .quotaViolationChange: "quota"
    case .accountChange: "another account"
    }
  }

  var document: Document {
    .versioned([
      "changes": .list(
        items.map { item in
          .object([
            "key": .string(item.key.text), "removed": .bool(item.new == nil),
            "value": item.new.map { .value($0) },
          ])
        }),
      "joined": change.isJoined ? .bool(true) : nil,
      "reason": .string(change.reason.rawValue),
    ])
  }
}

/// The report of `kith history`.
struct HistoryReport: Sendable {
  var store: String
  /// Newest first.
  var values: [KeyValueStore.PastValue]
  /// Has the devices' names.
  var status: NodeStatus

  func text(_ style: Style) -> String {
    var table = Table([
      ("KEY", .whole), ("NO", .right), ("UNTIL", .left), ("ENDED BY", .cut), ("VALUE", .cut),
    ])
    for past in values {
      table.add([
        Table.Cell(Columns.printable(past.key.text), .strong), Table.Cell("\(past.number)"),
        Table.Cell(Moment.text(past.endedMilliseconds)),
        Table.Cell(past.endedBy.map { status.name(of: $0) } ?? "the quota"),
        past.value.map {
          Table.Cell(ValueText.shown($0, limit: style.columns ?? .max))
        }
          ?? Table.Cell("was missing", .faint),
      ])
    }
    return table.text(style)
  }

  var document: Document {
    .versioned([
      "store": .string(store),
      "values": .list(
        values.map { past in
          .object([
            "endedBy": past.endedBy.map { .string($0.hex) },
            "endedMilliseconds": .int(past.endedMilliseconds), "key": .string(past.key.text),
            "number": .int(past.number), "transaction": .int(past.transaction),
            "type": past.value.map { .string($0.typeName) }, "value": past.value.map { .value($0) },
          ])
        }),
    ])
  }
}
