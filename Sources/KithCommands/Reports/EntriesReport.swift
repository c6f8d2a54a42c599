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

  /// Of the keys that begin with the prefix, in their order, or the largest values first.
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
    var table = Table([("KEY", .cut), ("TYPE", .left), ("SIZE", .right), ("VALUE", .cut)])
    for item in items {
      table.add([
        Table.Cell(Columns.printable(item.key), .strong),
        Table.Cell(item.value.typeName, .faint), Table.Cell(Format.bytes(item.bytes)),
        Table.Cell(Columns.printable(ValueText.text(item.value), limit: style.columns ?? .max)),
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
