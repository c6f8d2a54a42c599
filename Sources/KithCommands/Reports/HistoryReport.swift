import Kith
import KithTerminal

/// The report of `kith history`.
struct HistoryReport: Sendable {
  var store: String
  /// Newest first.
  var values: [KeyValueStore.PastValue]
  /// Has the devices' names.
  var status: NodeStatus

  func text(_ style: Style) -> String {
    var table = Table([
      ("NO", .right), ("KEY", .cut), ("UNTIL", .left), ("ENDED BY", .cut), ("VALUE", .cut),
    ])
    for past in values {
      table.add([
        Table.Cell("\(past.number)"), Table.Cell(Columns.printable(past.key.text), .strong),
        Table.Cell(Moment.text(past.endedMilliseconds)),
        Table.Cell(past.endedBy.map { status.name(of: $0) } ?? "the quota"),
        past.value.map {
          Table.Cell(Columns.printable(ValueText.text($0), limit: style.columns ?? .max))
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
            "number": .int(past.number), "type": past.value.map { .string($0.typeName) },
            "value": past.value.map { .value($0) },
          ])
        }),
    ])
  }
}
